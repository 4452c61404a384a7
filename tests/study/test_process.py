"""What the process says that owns a study, when it can't go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.backends.remote.submission import Journal
from distrain_nb.study import Study
from distrain_nb.study.__main__ import _own_study, main
from distrain_nb.study.files import StudyFile
from distrain_nb.study.listing import new_folder
from distrain_nb.worker.files.status import State, Status
from tests.remote.test_lock import without_locks
from tests.study.stored import stored_study


def lost(sent: float) -> Study:
    """A study whose backend nobody has, owned; `sent` is when its job was sent, 0 for never."""
    with new_folder() as (number, folder):
        pass
    spec: dict[str, object] = {"tune": ["x=0..9"], "goal": ["min:loss"]}
    StudyFile(number, "bowl", "key", 1e9, spec, backend="nowhere").write(folder)
    Status(State.STARTING).enter(State.STARTING, "starting").write(folder)
    Journal(sent=sent).write(folder)
    _own_study(folder)
    return Study(folder)


def test_a_backend_that_is_gone_is_said_in_plain_words(home: Path) -> None:
    status = lost(sent=0.0).status
    assert status.state is State.FAILED and "nowhere" in status.error
    assert not status.error.startswith("OptionError")


def test_a_tuning_job_that_may_go_on_is_not_said_to_have_failed(home: Path) -> None:
    status = lost(sent=1e9).status
    assert not status.state.final
    assert "the job is not touched" in status.note and "nowhere" in status.note


def test_a_study_says_that_there_are_no_locks(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    without_locks(monkeypatch, tmp_path)
    found = stored_study(home, 0, 1, State.STARTING)
    main(found.folder)
    status = found.status
    assert status.state is State.FAILED
    assert "has locks: set DISTRAIN_HOME or TMPDIR to a folder on a local disk" in status.error
