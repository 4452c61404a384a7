"""What stands below a cell whose run goes on without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.magics.cell import watch
from distrain_nb.run.store import Store
from distrain_nb.worker.files.status import State
from tests.server.stored import stored_run


def test_a_cell_that_does_not_wait_says_where_its_run_goes_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stored_run(Store(home), "begun\n", State.RUNNING)
    watch(run, waits=False)
    said = capsys.readouterr().out
    assert "begun" in said
    assert f"run {run.id} continues in the background; %distrain logs {run.id} --follow" in said


def test_a_run_that_has_ended_by_then_is_shown_whole(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stored_run(Store(home), "begun\nlast\n")
    watch(run, waits=False)
    assert "last" in capsys.readouterr().out
