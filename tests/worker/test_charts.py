"""Event files below the working folder are brought to the charts, also across file systems."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.run.metrics.events import scalars
from distrain_nb.worker.metrics import writer
from distrain_nb.worker.supervisor.charts import StrayCharts


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
    charts = StrayCharts(tmp_path, elsewhere, {os.getpid(): "rank-1"})
    for step in range(3):
        writer.append(tmp_path / "runs" / "one", step, {"loss": float(step)})
        charts._look()
        assert values(elsewhere / "rank-1" / "runs" / "one") == [float(n) for n in range(step + 1)]


def test_what_a_run_is_told_to_write_is_not_brought_again(tmp_path: Path) -> None:
    told = tmp_path / "tensorboard"
    charts = StrayCharts(tmp_path, told, {os.getpid(): ""})
    writer.append(told, 1, {"loss": 1.0})
    charts._look()
    assert values(told) == [1.0]
