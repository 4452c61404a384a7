"""The rows of studies in a list: what each says of a study without its trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.metrics import finite
from distrain_nb.run.pages.rows import Rows
from distrain_nb.run.summary import UNREADABLE
from distrain_nb.study.summary import summary_of
from distrain_nb.types import Json

if TYPE_CHECKING:
    from distrain_nb.study.study import Study


@dataclass(frozen=True)
class StudyRow:
    """One study of a list: `key` is what the runs of its trials have of it, `best` the best trial
    in words, `cost_note` what the cost leaves out. Times are in seconds since the epoch."""

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
    cost: str = ""
    cost_note: str = ""

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
    """Return the study's present row. Raises RunUnreadable."""
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
        cost=now.cost,
        cost_note=now.cost_note,
    )
