"""What `import distrain_nb` offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import distrain_nb

HEAVY = (
    "numpy",
    "pandas",
    "plotly",
    "torch",
    "ipywidgets",
    "anywidget",
    "yaml",
    "httpx",
    "IPython",
)


def test_every_name_is_there_and_stays_callable(home: object) -> None:
    for name in set(distrain_nb.__all__) - {"__version__"}:
        for _ in range(2):  # a module of the same name would take its place once imported
            assert callable(getattr(distrain_nb, name)), name
    assert distrain_nb.runs() == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="sumbit"):
        distrain_nb.sumbit  # noqa: B018


def test_importing_it_imports_nothing_heavy() -> None:
    code = f"import sys, distrain_nb; print([m for m in {HEAVY} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout.strip() == "[]"


def test_loading_the_extension_imports_only_what_watches_cells() -> None:
    """`%load_ext` takes 7 ms of the 10 that it may; each dataclass would take one of them."""
    code = (
        "import sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance().run_line_magic('load_ext', 'distrain_nb')\n"
        "print(*sorted(name for name in sys.modules if name.startswith('distrain_nb')))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    rooms = {".".join(name.split(".")[:2]) for name in printed.split()}
    assert rooms == {
        *("distrain_nb", "distrain_nb.errors", "distrain_nb.escapes", "distrain_nb.magics"),
        *("distrain_nb.observed", "distrain_nb.worker"),
    }
