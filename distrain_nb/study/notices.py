"""Tells by a webhook or a mail how a study has ended: `python -m distrain_nb.study.notices FOLDER
CHANNEL…`.

What it says is read at the end, so that a process that only waits stays small. A study that has
ended may go on with more trials, which starts another such process: it waits for the one before,
and tells no end twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.lock import carrier_lock
from distrain_nb.errors import DistrainError
from distrain_nb.study.files import STUDY_FILE, TOLD_FILE
from distrain_nb.tracking.notify import LOOK_EVERY_S, RunWatch, main
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.study.study import Study


LOCK_FILE = "notices.lock"  # held by the process that follows the study


class StudyWatch(RunWatch):
    """One study, and what has been told of it."""

    noun, verb, file = "study", "tune", STUDY_FILE

    @cached_property
    def _study(self) -> Study:
        from distrain_nb.study.study import Study

        return Study(self._folder)

    def status(self) -> Status:
        """Return how it is doing; a study whose process was killed gets another one."""
        return self._study.status

    def ending(self, status: Status) -> str:
        """Say why it ended, how many trials it had, and which was the best."""
        from distrain_nb.study.summary import summary_of

        try:
            return summary_of(self._study).ending
        except DistrainError:  # damaged
            return super().ending(status)

    def _tell(self, event: str, text: str, status: Status) -> None:
        sent, moment = self._folder / TOLD_FILE, repr(status.times.get(str(status.state)))
        if event == "end" and sent.exists() and sent.read_text(encoding="utf-8") == moment:
            return
        super()._tell(event, text, status)
        if event == "end":
            sent.write_text(moment, encoding="utf-8")

    def name(self, record: Mapping[str, object], number: int) -> str:
        """Return what a title calls it."""
        return f"study {super().name(record, number)}"

    def say(self, text: str) -> None:
        """Note it beside the study's state. Raises OSError."""
        status = Status.read(self._folder)
        if status.state.final:
            replace(status, note="; ".join(filter(None, (status.note, text)))).write(self._folder)


def follow(folder: Path, names: list[str]) -> None:
    """Follow a study to its end, once nobody else does."""
    while True:
        with carrier_lock(folder, LOCK_FILE) as mine:
            if mine:
                return main(StudyWatch, folder, names)
        time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    follow(Path(sys.argv[1]), sys.argv[2:])
