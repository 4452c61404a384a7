"""`%pip install` in a kernel of each place: what is pinned stays, and the next cells work."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.embedding.environments import (
    COLAB,
    DISTRIBUTION_4,
    ROOT,
    Place,
    copy,
    environment,
    installed,
    kernels_of,
)
from tests.kernels import Outcome, kernel

TRAIN = """%%distrain -n 2 --name short
from distrain_nb import log_metrics
for step in range(5):
    log_metrics(loss=1 / (step + 1), step=step)
print("done")
"""
HTML, TEXT = "text/html", "text/plain"


def cells_on_layouts() -> list[str]:
    """Of the notebook that needs nothing but the package."""
    told = json.loads((ROOT / "notebooks" / "layouts.ipynb").read_text(encoding="utf-8"))
    return ["".join(each["source"]) for each in told["cells"] if each["cell_type"] == "code"]


def assert_shown(outcome: Outcome) -> None:
    """The run was shown, and left a document."""
    assert not outcome.error, outcome.traceback
    *_, charts, run = [each for each in outcome.displays if each[TEXT]]
    assert {HTML, TEXT} <= set(run) & set(charts)
    assert "[rank 1] done" in run[TEXT]
    assert charts[TEXT] == "loss 0.2"


def test_the_wheel_tells_type_checkers_that_it_has_types(wheel: Path) -> None:
    assert "distrain_nb/py.typed" in ZipFile(wheel).namelist()


@pytest.mark.parametrize("place", [DISTRIBUTION_4, COLAB], ids=lambda place: place.name)
def test_one_line_installs_beside_what_is_pinned_and_lasts(
    place: Place, wheel: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = copy(environment(place), tmp_path / "conda")
    before = installed(python)
    monkeypatch.setenv("JUPYTER_PATH", kernels_of(python, tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    with kernel(tmp_path, dict(os.environ)) as started:
        assert not started.run(f"%pip install --quiet {wheel}", timeout=300).error
        loaded = started.run("%load_ext distrain_nb")
        assert not loaded.error
        assert ("reload this page" in loaded.text) == ("anywidget" not in before)
        assert_shown(started.outcome(started.send(TRAIN, on_a_page=True)))
    with kernel(tmp_path, dict(os.environ)) as started:
        assert_shown(started.outcome(started.send(TRAIN, on_a_page=True)))
        for cell in cells_on_layouts():
            outcome = started.run(cell)
            assert not outcome.error, outcome.traceback
    after = installed(python)
    assert "distrain-nb" in after
    assert {name: after.get(name) for name in before} == before


def test_an_administrators_script_installs_it_for_the_next_server(
    wheel: Path, tmp_path: Path
) -> None:
    """It finds Python in the PATH where there is no /opt/conda."""
    python = copy(environment(DISTRIBUTION_4), tmp_path / "conda")
    before = installed(python)
    path = f"{Path(python).parent}:{os.environ['PATH']}"
    script = ["bash", str(ROOT / "scripts" / "install_for_all.sh"), str(wheel)]
    for _ in range(2):  # a machine starts more than once
        subprocess.run(script, env={**os.environ, "PATH": path}, check=True)
    after = installed(python)
    assert {name: after.get(name) for name in before} == before
    list_extensions = [python, "-m", "jupyter_server.extension.serverextension", "list"]
    listed = subprocess.run(list_extensions, capture_output=True, text=True)
    assert "distrain_nb.server enabled" in re.sub(
        r"\x1b\[[0-9;]*m", "", listed.stdout + listed.stderr
    )
