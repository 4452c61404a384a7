"""What the process says that owns a study, when it can't go on."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.backends.remote.submission import Journal
from distrain_nb.study import Study
from distrain_nb.study.__main__ import _own_study
from distrain_nb.study.files import StudyFile
from distrain_nb.study.listing import new_folder
from distrain_nb.worker.files.status import State, Status


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
