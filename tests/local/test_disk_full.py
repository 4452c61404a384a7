"""A full disk stops neither the program nor the report."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.run import still
from distrain_nb.worker.status import State
from tests.conftest import eventually

MIB = 1 << 20
PRINT_10_MIB = "import time\nfor n in range(10_000): print(n, 'x' * 1000)\n{then}\nprint('done')"


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """DISTRAIN_HOME on a file system of 16 MiB. Needs root."""
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", home], check=True)
    yield home
    subprocess.run(["umount", "--lazy", home], check=True)


def test_lines_wait_in_memory_until_there_is_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(14 * MIB))
    run = api.submit(PRINT_10_MIB.format(then="time.sleep(3)"))
    assert eventually(lambda: "No space left" in run.status.note)
    filler.unlink()
    run.wait(60)
    lines = [line.text.split()[0] for line in still(run.lines())]
    assert lines == [str(n) for n in range(10_000)] + ["done"]
    assert run.status.note == ""


def test_a_disk_that_stays_full_is_said(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(14 * MIB))
    run = api.submit(PRINT_10_MIB.format(then=""))
    assert eventually(lambda: run.state.final)
    assert run.state is State.SUCCEEDED
    assert "were lost" in run.status.note and "No space left" in run.status.note
    assert next(iter(run.lines())).text.startswith("0 ")
