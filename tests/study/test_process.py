"""What the process says that owns a study, when it can't go on."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.study import Study
from distrain_nb.study.__main__ import _own
from distrain_nb.study.files import StudyFile
from distrain_nb.study.listing import new_folder
from distrain_nb.worker.files.status import State, Status


def test_a_backend_that_is_gone_is_said_in_plain_words(home: Path) -> None:
    number, folder = new_folder()
    spec: dict[str, object] = {"tune": ["x=0..9"], "goal": ["min:loss"]}
    StudyFile(number, "bowl", "key", 1e9, spec, backend="nowhere").write(folder)
    Status(State.STARTING).enter(State.STARTING, "starting").write(folder)
    _own(folder)
    status = Study(folder).status
    assert status.state is State.FAILED and "nowhere" in status.error
    assert not status.error.startswith("OptionError")
