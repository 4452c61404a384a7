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
