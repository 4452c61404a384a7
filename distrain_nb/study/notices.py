"""Tells by a webhook or a mail how a study has ended: `python -m distrain_nb.study.notices FOLDER
CHANNEL…`.

What it says is read at the end, so that a process that only waits stays small.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.study.files import STUDY_FILE
from distrain_nb.tracking.notify import RunWatch, main
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.study.study import Study


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

    def name(self, record: Mapping[str, object], number: int) -> str:
        """Return what a title calls it."""
        return f"study {super().name(record, number)}"

    def say(self, text: str) -> None:
        """Note it beside the study's state. Raises OSError."""
        status = Status.read(self._folder)
        if status.state.final:
            replace(status, note="; ".join(filter(None, (status.note, text)))).write(self._folder)


if __name__ == "__main__":
    main(StudyWatch, Path(sys.argv[1]), sys.argv[2:])
