"""What the notebook has set since it imported a module, that module's import doesn't set anew."""

from __future__ import annotations

import decimal
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.program.notebooks import Kernel, Place

MODE = "import os\nos.environ['OWN_MODE'] = 'module'\ndef mode(): return os.environ.get('OWN_MODE')"
DIGITS = "import decimal\ndecimal.getcontext().prec = 7"
PRECISION = "decimal.getcontext().prec"
# name: the modules' files; the notebook after it; the cell before what it shows; what it shows
CASES: dict[str, tuple[dict[str, str], str, str, str, Any]] = {
    "a variable": (
        {"own_m": MODE},
        "import own_m, os\nos.environ['OWN_MODE'] = 'notebook'",
        "",
        "own_m.mode()",
        "notebook",
    ),
    "a variable that is deleted": (
        {"own_m": MODE},
        "import own_m, os\ndel os.environ['OWN_MODE']",
        "",
        "own_m.mode()",
        None,
    ),
    "through another module": (
        {"own_m": MODE, "own_n": "import own_m\nK = 1"},
        "import own_n, os\nos.environ['OWN_MODE'] = 'notebook'",
        "",
        "[own_n.K, own_n.own_m.mode()]",
        [1, "notebook"],
    ),
    "in a package": (
        {"own_p/__init__": MODE, "own_p/sub": MODE + "\nK = 1"},
        "from own_p.sub import K\nimport os\nos.environ['OWN_MODE'] = 'notebook'",
        "from own_p import sub\n",
        "[sub.mode(), K]",
        ["notebook", 1],
    ),
    "a setting, back to the usual": (
        {"own_m": DIGITS},
        "import own_m, decimal\ndecimal.getcontext().prec = 28",
        "",
        f"[{PRECISION}, own_m.__name__]",
        [28, "own_m"],
    ),
    "an import in the cell": (
        {"own_m": DIGITS},
        "import own_m, decimal\ndecimal.getcontext().prec = 9\ndel own_m",
        "import own_m\n",
        PRECISION,
        9,
    ),
    "what the cell has set": (
        {"own_m": DIGITS},
        "import own_m, decimal\ndecimal.getcontext().prec = 28\ndel own_m",
        "decimal.getcontext().prec = 3\nimport own_m\n",
        PRECISION,
        3,
    ),
    "nothing since": (
        {"own_m": f"{MODE}\n{DIGITS}"},
        "import own_m, decimal",
        "",
        f"[own_m.mode(), {PRECISION}]",
        ["module", 7],
    ),
    "a module that only the cell imports": (
        {"own_m": DIGITS},
        "import decimal",
        "import own_m\n",
        PRECISION,
        7,
    ),
}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OWN_MODE", "before")
    with decimal.localcontext():
        yield
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


@pytest.mark.brief
@pytest.mark.slow
@pytest.mark.parametrize(("files", "notebook", "cell", "shows", "right"), CASES.values(), ids=CASES)
def test_the_notebooks_setting_stays(
    kernel: Kernel,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    notebook: str,
    cell: str,
    shows: str,
    right: Any,
) -> None:
    for name, text in files.items():
        path = kernel.folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(kernel.folder))
    kernel.run(notebook)
    program = kernel.capture(f"{cell}import json\nprint('RESULT', json.dumps({shows}))")
    assert json.loads(json.dumps(place.results(program))) == right
