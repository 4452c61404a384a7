"""Studies at a glance, for a list that is kept current."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.metrics import finite
from distrain_nb.run.pages.listing import Rows
from distrain_nb.run.summary import UNREADABLE
from distrain_nb.study.summary import summary_of

if TYPE_CHECKING:
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


class StudyListing(Rows["Study", StudyRow]):
    """The rows of studies. One that can't be read says so in `cause`."""

    def row(self, listed: Study) -> StudyRow:
        return row_of(listed)

    def unreadable(self, listed: Study, error: Exception) -> StudyRow:
        number, name = listed.id, f"study-{listed.id}"
        return StudyRow(number, "", name, UNREADABLE, True, "", 0, "", str(error), 0.0, 0.0)


def row_of(study: Study) -> StudyRow:
    """As it is now. Raises RunUnreadable."""
    now = summary_of(study)
    return StudyRow(
        id=now.id,
        key=study.file.key,
        name=now.name,
        state=now.state,
        final=now.final,
        progress=now.where,
        running=now.running,
        best=now.best,
        cause=now.cause,
        begin=now.begin,
        end=now.end,
    )
