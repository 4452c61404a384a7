"""Event files that programs write below their working folder are found, and only the run's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.run import Run
from distrain_nb.run.metrics.events import scalars
from distrain_nb.worker.metrics import writer
from tests.conftest import eventually

# Without TensorFlow, which takes long to import, as most who use PyTorch have it.
SUMMARY_WRITER = """
import os, sys, time
sys.modules["tensorflow"] = None
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter()
writer.add_scalar("loss", float(os.environ["RANK"]), 1)
writer.flush()
while not os.path.exists("seen"):
    time.sleep(0.1)
writer.add_scalar("loss", 2.0, 2)
writer.close()
"""
LONE = """
from tensorboardX import SummaryWriter
with SummaryWriter("lightning_logs/version_0") as writer:
    writer.add_scalar("loss", 0.5, 1)
"""


@pytest.fixture
def working(home: Path, notebook_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an event file of an earlier run."""
    monkeypatch.chdir(notebook_folder)
    writer.append(notebook_folder / "runs" / "before", 1, {"old": 1.0})
    return notebook_folder


def found(run: Run) -> dict[tuple[str, str], list[float]]:
    """Values by series and tag."""
    lines = scalars(run.folder / "tensorboard")
    return {tuple(key): points["value"].tolist() for key, points in lines.items()}


def test_what_each_rank_writes_by_default_is_found_while_it_runs(working: Path) -> None:
    run = api.submit(SUMMARY_WRITER, ranks_per_replica=2)
    assert eventually(lambda: len(found(run)) == 2, within=180)
    (working / "seen").touch()
    run.wait(60)
    lines = {series: values for (series, _), values in found(run).items()}
    of_others = next(series for series in lines if series.startswith("rank-1/runs/"))
    assert lines.pop(of_others) == [1.0, 2.0]
    ((series, values),) = lines.items()
    assert series.startswith("runs/")
    assert values == [0.0, 2.0]


def test_what_was_written_in_a_moment_is_found_at_the_end(working: Path) -> None:
    assert found(api.submit(LONE, wait=True)) == {("lightning_logs/version_0", "loss"): [0.5]}


def test_what_another_process_writes_meanwhile_is_not_the_runs(working: Path) -> None:
    run = api.submit("import time\nwhile True: time.sleep(0.1)")
    assert eventually(lambda: str(run.state) == "running")
    writer.append(working / "mine", 1, {"other": 1.0})
    run.cancel()
    assert eventually(lambda: run.state.final)
    assert list((working / "mine").iterdir())
    assert not found(run)
