"""What is in the wheel: the package, the page's bundles, JupyterLab's extension; nothing else."""

from __future__ import annotations

import subprocess
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import distrain_nb
from tests.test_quickstart import installed_with

ROOT = Path(__file__).parents[1]
INFO = f"distrain_nb-{distrain_nb.__version__}.dist-info"
SHARED = f"distrain_nb-{distrain_nb.__version__}.data/data"
LAB = "share/jupyter/labextensions/distrain-nb"
BUILT = {
    *("charts.js", "compare.js", "displays.js", "form.js", "media.js", "problem.js", "run.js"),
    *("runs.js", "study.js"),
    *("charts.css", "form.css", "problem.css", "run.css", "runs.css", "study.css"),
}
FRAMEWORKS = {"tensorboard", "tensorflow", "tensorflow-cpu", "torch"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builder = pytest.importorskip("hatchling.builders.wheel", reason="`make setup` installs it")
    (path,) = builder.WheelBuilder(str(ROOT)).build(
        directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"]
    )
    return zipfile.ZipFile(path)


def in_git(folder: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


def test_it_has_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    shared = {name for name in names if name.startswith(SHARED)}
    own = {name for name in names - shared if not name.startswith(INFO)}
    built = {f"distrain_nb/ui/static/{name}" for name in BUILT}
    assert own == in_git("distrain_nb") | built
    assert {name.removeprefix(f"{SHARED}/") for name in shared} == {
        "etc/ipython/startup/50-distrain.py",
        "etc/jupyter/jupyter_server_config.d/distrain_nb.json",
        f"{LAB}/install.json",
        f"{LAB}/package.json",
        f"{LAB}/static/lab.css",
        f"{LAB}/static/plotly-basic.min.js",
        f"{LAB}/static/remoteEntry.js",
    }


def test_it_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    said = Parser().parsestr(wheel.read(f"{INFO}/METADATA").decode())
    assert said["Version"] == distrain_nb.__version__
    assert said["Requires-Python"] == ">=3.10"
    assert said.get_payload().lstrip().startswith("# distrain-nb")
    points = wheel.read(f"{INFO}/entry_points.txt").decode()
    assert "distrain_nb.places.local.backend:LocalBackend" in points


def test_rehearsals_bring_no_framework() -> None:
    assert not installed_with("distrain-nb", "rehearsal") & FRAMEWORKS
