"""Studies at a glance, for a list that is kept current."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.run.metrics import finite
from distrain_nb.run.summary import UNREADABLE
from distrain_nb.study.summary import summary_of
from distrain_nb.worker.files.folder import STATUS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.study.study import Study
    from distrain_nb.types import Json


@dataclass(frozen=True)
class StudyRow:
    """One study of a list: `key` is what the runs of its trials have of it, `best` the best trial
    in words. Times are in seconds since the epoch."""

    id: int
    key: str
    name: str
    state: str
    final: bool
    progress: str
    running: int
    best: str
    cause: str
    begin: float
    end: float | None

    def as_json(self) -> dict[str, Json]:
        return finite.without_nan(vars(self))


class StudyListing:
    """Reads rows again and again, those of studies that have ended once. Threads may share one."""

    def __init__(self) -> None:
        self._ended: dict[tuple[str, int, int], StudyRow] = {}
        self._reading = Lock()

    def read(self, studies: Iterable[Study]) -> list[StudyRow]:
        """Return the studies as they are now, in the order given."""
        with self._reading:
            return [self._now(study) for study in studies]

    def _now(self, study: Study) -> StudyRow:
        try:
            return self._ended.get(_version(study)) or self._read(study)
        except (OSError, DistrainError) as error:
            return _unreadable(study, str(error))

    def _read(self, study: Study) -> StudyRow:
        version = _version(study)
        found = row_of(study)
        if found.final:
            self._ended[version] = found
        return found


def row_of(study: Study) -> StudyRow:
    """As it is now. Raises RunUnreadable."""
    now = summary_of(study)
    return StudyRow(
        id=now.id,
        key=study.file.key,
        name=now.name,
        state=str(now.state),
        final=now.state.final,
        progress=now.progress,
        running=now.running,
        best=now.best,
        cause=now.error.strip().partition("\n")[0],
        begin=now.begin,
        end=now.end,
    )


def _version(study: Study) -> tuple[str, int, int]:
    """What is another one once its state has changed, which is replaced as a file."""
    status = (study.folder / STATUS_FILE).stat()
    return str(study.folder), status.st_ino, status.st_mtime_ns


def _unreadable(study: Study, why: str) -> StudyRow:
    number = int(study.folder.name)
    return StudyRow(
        number, "", f"study-{number}", UNREADABLE, True, "", 0, "", why, begin=0.0, end=0.0
    )
