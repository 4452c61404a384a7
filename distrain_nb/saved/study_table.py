"""A study as a line and a table of its trials: text, and HTML that needs no scripts."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import DistrainError
from distrain_nb.run.summary import duration, plural, short_number, state_text_of
from distrain_nb.saved import unstyled
from distrain_nb.saved.document import head, study_reference, style
from distrain_nb.saved.markup import LITERAL, OWN_KEYS
from distrain_nb.saved.tables import as_text, table_html
from distrain_nb.study.charts.drawing import StudyDrawing
from distrain_nb.study.files import TrialState
from distrain_nb.study.summary import summary_of, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.study import Study
    from distrain_nb.study.summary import StudySummary
    from distrain_nb.study.trial import StudyTrial

HEADINGS = ("trial", "state")
STATE = HEADINGS.index("state")
MOST_ROWS = 50  # the newest: `study.trials` has all


@dataclass(frozen=True)
class StudyTable:
    """A study as it was at one time; prints as text, shows as charts and a table in a notebook.

    `mark` is where a live view may stand instead, in HTML.
    """

    summary: StudySummary
    importances: Mapping[str, float] = field(default_factory=dict)
    mark: str = ""

    @property
    def headings(self) -> tuple[str, ...]:
        names, goals = self.summary.names, self.summary.goals
        return (*HEADINGS, *names, *goals, "steps", "duration", "run")

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The newest first."""
        return [tuple(self._row(trial)) for trial in self._shown]

    def __repr__(self) -> str:
        summary = self.summary
        lines = [summary.dated(summary.line, summary.now), summary.note, summary.error]
        table = as_text(self.headings, self.rows, "") if self.rows else ""
        return "\n".join(line.rstrip() for line in (*lines, table, self._more) if line)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        summary = self.summary
        reference = study_reference(summary.id, summary.begin, summary.final)
        return {**reference, "text/html": f"{self.mark}{self.still()}", "text/plain": repr(self)}

    def still(self) -> str:
        """Return state, charts and table in HTML that needs neither kernel nor scripts."""
        summary = self.summary
        sheet = StudyDrawing(summary, self.importances).sheet()
        charts = (
            '<div class="distrain-charts"><div class="dn-chart-tools"><span class="dn-soft">'
            f"brushes, values, logs of trials: %distrain tune {summary.id}</span></div>"
            f'<div class="dn-figure">{sheet}</div></div>'
        )
        note = f'<div class="dn-note">{html.escape(summary.note)}</div>' if summary.note else ""
        error = f'<div class="dn-error">{html.escape(summary.error)}</div>' if summary.error else ""
        return (
            f'{style("study")}<section class="distrain distrain-runs distrain-study dn-styled'
            f' {LITERAL}" {OWN_KEYS} hidden="hidden" data-state="{summary.state}"'
            f' aria-label="study {summary.id}">'
            f"{head(summary, summary.now)}"
            f"{self._best()}{note}{error}{charts if sheet else ''}{self._table()}</section>"
            f"{unstyled.run(repr(self))}"
        )

    # -- parts of the page ------------------------------------------------------------------------

    def _best(self) -> str:
        summary = self.summary
        bar = (
            f'<progress value="{summary.ended}" max="{summary.wanted}" aria-label="trials">'
            "</progress>"
        )
        return (
            f'<div class="dn-progress">{bar} <span class="dn-soft">{summary.left}</span> '
            f'<span class="dn-best-trial">{html.escape(summary.best)}</span></div>'
        )

    def _table(self) -> str:
        if not self._shown:
            return ""
        best = {trial.number for trial in self.summary.front}
        about = [(str(trial.state), trial.why, trial.number in best) for trial in self._shown]
        table = table_html(self.headings, self.rows, about, STATE, " dn-trials")
        count = plural(len(self.summary.trials), "trial")
        more = (
            f'<div class="dn-empty dn-soft">{html.escape(self._more)}</div>' if self._more else ""
        )
        return (
            f'<div class="dn-bar"><strong>{count}</strong></div><div class="dn-runs" role="region"'
            f' tabindex="0" aria-label="trials">{table}</div>{more}'
        )

    # -- texts ------------------------------------------------------------------------------------

    @property
    def _shown(self) -> list[StudyTrial]:
        return list(reversed(self.summary.trials))[:MOST_ROWS]

    @property
    def _more(self) -> str:
        count = len(self.summary.trials) - MOST_ROWS
        return f"{plural(count, 'older trial')}: see study.trials" if count > 0 else ""

    def _row(self, trial: StudyTrial) -> Iterator[str]:
        yield str(trial.number)
        state = "running" if trial.state is TrialState.REQUESTED else str(trial.state)
        yield state_text_of(state, state, trial.why)
        for name in self.summary.names:
            yield value_text(trial.params[name]) if name in trial.params else ""
        for goal in self.summary.goals:
            yield short_number(trial.goals[goal]) if goal in trial.goals else ""
        yield str(trial.steps)
        yield duration(trial.duration)
        yield str(trial.run_id or "")


def studies_text(studies: list[Study]) -> str:
    """Return a line for each study."""
    if not studies:
        return "no studies yet: put %%distrain --tune NAME=LOW..HIGH --goal min:METRIC on a cell"
    return "\n".join(map(_line, studies))


def _line(study: Study) -> str:
    try:
        return summary_of(study).line
    except DistrainError as error:
        return str(error)
