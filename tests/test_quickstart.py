"""`make demo`: the main job, end to end, on real data."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.kernels import doubts_in

ROOT = Path(__file__).parents[1]


@pytest.mark.stands_for("the quickstart")
@pytest.mark.slow
def test_the_quickstart_trains_to_95_percent_and_brings_it_all_back(home: Path) -> None:
    demo = subprocess.run(
        [sys.executable, "scripts/demo.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert demo.returncode == 0, demo.stderr
    assert "The executed notebook: out/quickstart.ipynb" in demo.stdout
    accuracy = re.search(r"trained on 2 ranks: ([\d.]+)%", demo.stdout)
    assert accuracy and float(accuracy[1]) >= 95
    assert re.search(r"a step takes .*: .*% computing", demo.stdout)
    executed = nbformat.read(ROOT / "out" / "quickstart.ipynb", as_version=4)
    assert not doubts_in(executed)
    shown = [o.data for c in executed.cells for o in c.get("outputs", []) if "data" in o]
    assert any('<path class="dn-line"' in data.get("text/html", "") for data in shown)
    assert any("epoch 12" in data.get("text/html", "") for data in shown)
    assert any(
        "accuracy" in data.get("text/html", "") and "<table" in data["text/html"] for data in shown
    )
    assert (ROOT / "out" / "quickstart.ipynb").stat().st_size < 300_000


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 knows no module of a package without top_level"
)
def test_what_the_demo_installs_is_what_it_imports_and_no_other_framework() -> None:
    installed = installed_with("distrain-nb", "demo")
    notebook = nbformat.read(ROOT / "notebooks" / "quickstart.ipynb", as_version=4)
    cells = [
        re.sub(r"^%.*$", "", c.source, flags=re.M) for c in notebook.cells if c.cell_type == "code"
    ]
    for text in (*cells, (ROOT / "scripts" / "demo.py").read_text(encoding="utf-8")):
        for module in imported(text) - sys.stdlib_module_names:
            assert installed & packages(module), module
    assert "jupyterlab" in installed, "what shows the executed notebook"
    assert not installed & {"boto3", "google-cloud-storage", "moto", "tensorflow", "tensorflow-cpu"}


def imported(text: str) -> set[str]:
    """The top-level modules that a program imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


_distributions = cache(packages_distributions)


def packages(module: str) -> set[str]:
    """What brings a module; an editable package is named as its module."""
    names = (module, *_distributions().get(module, ()))
    return {canonicalize_name(name) for name in names}


def installed_with(name: str, extra: str = "") -> set[str]:
    """What comes with a package and its extra, by what the packages that are installed say."""
    found: set[tuple[str, str]] = set()
    waiting = [(name, extra), (name, "")]
    while waiting:
        package, wanted = waiting.pop()
        if (package, wanted) in found:
            continue
        found.add((package, wanted))
        for line in requires(package) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": wanted}):
                canonical = canonicalize_name(needed.name)
                waiting += [(canonical, each) for each in ("", *needed.extras)]
    return {package for package, _ in found}
