"""A full disk stops neither the program nor the report; one that can't be written is said soon."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.errors import DistrainError
from distrain_nb.places.local.warm import submit_run
from distrain_nb.run import final_lines
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.disks import fill, small_disk

MIB = 1 << 20
PRINT_10_MIB = """
import os, time
for n in range(10_000): print(n, 'x' * 1000)
{then}
print('done')
"""

WAIT = "import os, time\nwhile not os.path.exists('{}'): time.sleep(0.05)"


@pytest.fixture(name="small_disk")
def home_on_a_small_disk(home: Path) -> Iterator[Path]:
    """DISTRAIN_HOME on a file system of 16 MiB."""
    with small_disk(home, "16m") as disk:
        yield disk


def test_lines_wait_in_memory_until_there_is_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(14 * MIB))
    until_room = f"while os.path.exists({str(filler)!r}): time.sleep(0.1)"
    run = api.submit(PRINT_10_MIB.format(then=until_room))
    assert eventually(lambda: "No space left" in run.status.note)
    filler.unlink()
    run.wait(60)
    lines = [line.text.split()[0] for line in final_lines(run.lines())]
    assert lines == [str(n) for n in range(10_000)] + ["done"]
    assert run.status.note == ""


def test_a_disk_that_stays_full_is_said(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(14 * MIB))
    run = api.submit(PRINT_10_MIB.format(then=""))
    assert eventually(lambda: run.state.final)
    assert run.state is State.SUCCEEDED
    assert "were lost" in run.status.note and "No space left" in run.status.note
    assert next(iter(run.lines())).text.startswith("0 ")


def test_the_cause_of_a_failure_is_told_though_the_disk_is_full(small_disk: Path) -> None:
    """In the room that was reserved for it."""
    go_on = small_disk.with_name("go on")
    run = api.submit(f"{WAIT.format(go_on)}\nraise ValueError('boom')")
    assert eventually(lambda: run.state is State.RUNNING)
    fill(small_disk)
    go_on.touch()
    assert eventually(lambda: run.state.final)
    assert run.status.error.startswith("rank 0 failed: ValueError: boom")


def test_a_run_says_that_its_folder_has_become_read_only(home: Path, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    run = api.submit(WAIT.format(go_on))
    assert eventually(lambda: run.state is State.RUNNING)
    subprocess.run(["mount", "--bind", run.folder, run.folder], check=True)
    try:
        remount = ["mount", "-o", "remount,bind,ro", run.folder]
        # The kernel refuses while the supervisor writes a file there.
        assert eventually(lambda: subprocess.run(remount, check=False).returncode == 0)
        go_on.touch()
        assert eventually(lambda: run.state.final, within=45.0)
        assert run.state is State.FAILED
        assert run.status.error.endswith(f"{run.folder} can't be written")
    finally:
        subprocess.run(["umount", "--lazy", run.folder], check=True)


def test_a_run_does_not_start_where_nothing_can_be_written(small_disk: Path) -> None:
    run = api.submit("pass", wait=True)
    supervisor = run.status.supervisor
    assert supervisor and eventually(lambda: not supervisor.alive)  # it gives room back at its end
    fill(small_disk)
    with pytest.raises(DistrainError, match=r"can't be started here: .*No space left on device"):
        submit_run(run.folder, 60.0)
