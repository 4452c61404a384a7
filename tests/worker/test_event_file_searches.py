"""Event files below the working folder are brought to the charts, also across file systems."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.run.metrics.events import scalars
from distrain_nb.worker.metrics import writer
from distrain_nb.worker.metrics.event_format import event, first_event, record
from distrain_nb.worker.supervisor.stray_events import StrayEvents


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system than the working folder."""
    folder = Path("/dev/shm") / f"distrain-charts-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def values(folder: Path) -> list[float]:
    return [value for points in scalars(folder).values() for value in points["value"].tolist()]


def test_a_copy_on_another_file_system_grows_with_its_file(tmp_path: Path, elsewhere: Path) -> None:
    charts = StrayEvents(tmp_path, elsewhere, {os.getpid(): "rank-1"})
    for step in range(3):
        writer.append(tmp_path / "runs" / "one", step, {"loss": float(step)})
        charts._look()
        assert values(elsewhere / "rank-1" / "runs" / "one") == [float(n) for n in range(step + 1)]


def test_what_a_run_is_told_to_write_is_not_brought_again(tmp_path: Path) -> None:
    told = tmp_path / "tensorboard"
    charts = StrayEvents(tmp_path, told, {os.getpid(): ""})
    writer.append(told, 1, {"loss": 1.0})
    charts._look()
    assert values(told) == [1.0]


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("home/runs/7", ("record.json", "status.json")),
        ("jobs/night-1", ("variables.json", "code/program/main.py", "replicas/0/status.json")),
    ],
    ids=["a run", "a job"],
)
def test_what_was_brought_is_not_brought_again_by_way_of_a_run(
    tmp_path: Path, folder: str, files: tuple[str, ...]
) -> None:
    """The run's files come from its job into DISTRAIN_HOME, which is below the working folder."""
    for name in files:
        (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / name).touch()
    charts = StrayEvents(tmp_path, tmp_path / "output" / "tensorboard", {os.getpid(): ""})
    writer.append(tmp_path / folder / "tensorboard", 1, {"loss": 1.0})
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    other = f"events.out.tfevents.{NOW}.{HOST}.{gone.pid}.0"
    written(tmp_path / folder / "output" / "tensorboard" / other)
    charts._look()
    assert not (tmp_path / "output").exists()
    assert charts.passed_over() == ""


def written(path: Path, began: float = 0.0) -> None:
    """An event file of one number, begun at that time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number = event(time.time(), 1, {"loss": 0.5})
    path.write_bytes(record(first_event(began or time.time())) + record(number))


# Later than any of these tests starts: files that were begun before are another run's.
NOW, ME, HOST = f"{int(time.time()) + 86_400:010d}", os.getpid(), socket.gethostname()
# As the writers' sources have them.
WRITERS = {
    "tensorboard": f"events.out.tfevents.{NOW}.{HOST}.{ME}.0",
    "PyTorch with a suffix": f"events.out.tfevents.{NOW}.{HOST}.{ME}.0_lr=0.1",
    "a suffix of numbers": f"events.out.tfevents.{NOW}.{HOST}.{ME}.0.1",
    "tf.summary, Keras, clu": f"events.out.tfevents.{NOW}.{HOST}.{ME}.0.v2",
    "TensorFlow 1": f"events.out.tfevents.{NOW}.{HOST}",
    "tensorboardX with a suffix": f"events.out.tfevents.{NOW}.{HOST}.night",
    "tensorboardX with a prefix": f"night.out.tfevents.{NOW}.{HOST}",
    "a machine's name with numbers": f"events.out.tfevents.{NOW}.node-1.{ME}.0",
    "SageMaker's debugger": "000000000010_worker_0.tfevents",
    "by hand": "my_tfevents",
}


@pytest.mark.parametrize("name", WRITERS.values(), ids=WRITERS)
def test_files_of_all_writers_are_brought(tmp_path: Path, name: str) -> None:
    charts = StrayEvents(tmp_path, tmp_path / "told", {ME: ""})
    written(tmp_path / "tfevents_of_mine" / name)
    charts._look()
    assert values(tmp_path / "told" / "tfevents_of_mine") == [0.5]
    assert charts.passed_over() == ""


def test_a_machines_name_may_have_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node.1.example")
    charts = StrayEvents(tmp_path, tmp_path / "told", {ME: ""})
    written(tmp_path / f"events.out.tfevents.{NOW}.node.1.example")
    charts._look()
    assert values(tmp_path / "told") == [0.5]


@pytest.mark.parametrize(
    ("name", "began"),
    [("events.out.tfevents.1500000000.h", 0.0), ("000_worker_0.tfevents", 1.5e9),
     (f"events.out.tfevents.{NOW}.{HOST}.1.0", 0.0), ("0_worker_0.tfevents.tmp", 0.0)],
    ids=["of an earlier time", "begun earlier", "of another process", "half written"],
)  # fmt: skip
def test_what_is_another_runs_or_not_whole_is_left_alone(
    tmp_path: Path, name: str, began: float
) -> None:
    charts = StrayEvents(tmp_path, tmp_path / "told", {ME: ""})
    written(tmp_path / "runs" / name, began)
    charts._look()
    assert not values(tmp_path / "told")
    assert charts.passed_over() == ""


def test_what_may_be_the_runs_is_passed_over_with_a_word(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    charts = StrayEvents(tmp_path, tmp_path / "told", {ME: ""})
    name = f"events.out.tfevents.{NOW}.{HOST}.{gone.pid}.0"
    written(tmp_path / "runs" / name)
    charts._look()
    why = f"process {gone.pid} had ended before it was seen"
    assert charts.passed_over() == f"not in the charts: runs/{name} ({why})"
    os.link(tmp_path / "runs" / name, tmp_path / "of another run")
    assert charts.passed_over() == ""
    (tmp_path / "odd.tfevents").write_text("hello")
    charts._look()
    assert charts.passed_over() == (
        "not in the charts: odd.tfevents (it doesn't begin as event files do)"
    )
    written(tmp_path / "odd.tfevents")
    charts._look()
    assert values(tmp_path / "told") == [0.5] and charts.passed_over() == ""
    charts._is_cut = True
    assert "not all folders" in charts.passed_over()
