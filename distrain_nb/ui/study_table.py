"""A study as a line and a table of its trials: text, and HTML that needs no scripts."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.run.summary import brief, duration, plural
from distrain_nb.study.files import TrialState
from distrain_nb.ui.table import SIGNS
from distrain_nb.worker.files.status import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.study import Study
    from distrain_nb.study.trial import StudyTrial
    from distrain_nb.tuning.spec import StudySpec, Value

MOST_ROWS = 50  # the newest: `study.trials` has all
LONGEST_CAUSE = 60


@dataclass(frozen=True)
class StudyTable:
    """A study as it was at one time; prints as text, shows as a table in a notebook."""

    id: int
    name: str
    state: State
    error: str
    spec: StudySpec
    wanted: int
    trials: tuple[StudyTrial, ...]
    front: tuple[StudyTrial, ...]

    @classmethod
    def of(cls, study: Study) -> StudyTable:
        """As it is now. Raises RunUnreadable."""
        status, trials = study.status, tuple(study.each())
        front = tuple(study.front)
        name, wanted = study.name, study.wanted
        return cls(study.id, name, status.state, status.error, study.spec, wanted, trials, front)

    @property
    def line(self) -> str:
        """State, progress and the best so far, in a line of text."""
        running = sum(not trial.state.final for trial in self.trials)
        ended = len(self.trials) - running
        parts = [f"{ended} of {plural(self.wanted, 'trial')}"]
        parts += [f"{running} running"] if running else []
        parts += [each for each in (self._best(), self._left()) if each]
        return f"study {self.id} ({self.name}): {self.state}, {'; '.join(parts)}"

    @property
    def headings(self) -> tuple[str, ...]:
        return ("trial", "state", *self._names, *self._goals, "steps", "duration", "run")

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The newest first."""
        return [tuple(self._row(trial)) for trial in self._shown]

    def __repr__(self) -> str:
        lines = [self.line, self.error]
        if self.rows:
            widths = [max(map(len, each)) for each in zip(self.headings, *self.rows, strict=True)]
            lines += [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                for row in (self.headings, *self.rows)
            ]
        return "\n".join(line.rstrip() for line in (*lines, self._more) if line)

    def _repr_html_(self) -> str:
        from distrain_nb.ui.document import style

        said = "".join(f"<p>{html.escape(each)}</p>" for each in (self.error, self._more) if each)
        done = sum(trial.state.final for trial in self.trials)
        bar = f'<progress value="{done}" max="{self.wanted}" aria-label="trials"></progress>'
        head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in self.headings)
        body = "".join(map(self._row_html, self._shown))
        table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>" if body else ""
        return (
            f'{style()}<div class="distrain" style="overflow-x:auto"><p>{bar} '
            f'{html.escape(self.line)}</p><table class="dn-table">{table}</table>{said}</div>'
        )

    @property
    def bundle(self) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(parameter.name for parameter in self.spec.parameters))

    @property
    def _goals(self) -> tuple[str, ...]:
        return tuple(goal.metric for goal in self.spec.goals)

    @property
    def _shown(self) -> list[StudyTrial]:
        return list(reversed(self.trials))[:MOST_ROWS]

    @property
    def _more(self) -> str:
        count = len(self.trials) - MOST_ROWS
        return f"{plural(count, 'older trial')}: see study.trials" if count > 0 else ""

    def _best(self) -> str:
        if not self.front:
            return ""
        if len(self._goals) > 1:
            return f"{plural(len(self.front), 'trial')} that no other beats"
        best, goal = self.front[0], self._goals[0]
        values = ", ".join(f"{name}={_text(value)}" for name, value in best.params.items())
        return f"best {goal} {brief(best.goals[goal])} in trial {best.number} ({values})"

    def _left(self) -> str:
        """How long it still takes, if trials go on as they went."""
        ended = [trial.duration for trial in self.trials if trial.state.final]
        left = self.wanted - len(ended)
        if self.state is not State.RUNNING or not ended or left <= 0:
            return ""
        seconds = sum(ended) / len(ended) * left / self.spec.parallel
        return f"about {duration(seconds)} left"

    def _row(self, trial: StudyTrial) -> Iterator[str]:
        yield str(trial.number)
        state = "running" if trial.state is TrialState.REQUESTED else str(trial.state)
        yield f"{SIGNS.get(state, '◌')} {state}{_shortened(trial.why)}"
        for name in self._names:
            yield _text(trial.params[name]) if name in trial.params else ""
        for goal in self._goals:
            yield brief(trial.goals[goal]) if goal in trial.goals else ""
        yield str(trial.steps)
        yield duration(trial.duration)
        yield str(trial.run_id or "")

    def _row_html(self, trial: StudyTrial) -> str:
        cells = [f"<td>{html.escape(cell)}</td>" for cell in self._row(trial)]
        why = f' title="{html.escape(trial.why)}"' if trial.why else ""
        cells[1] = cells[1].replace("<td>", f'<td class="dn-state"{why}>', 1)
        best = trial.number in {each.number for each in self.front}
        mark = ' style="font-weight:600"' if best else ""
        return f'<tr data-state="{trial.state}"{mark}>{"".join(cells)}</tr>'


def studies_text(found: list[Study]) -> str:
    """A line for each study."""
    if not found:
        return "no studies yet: put %%distrain --tune NAME=LOW..HIGH --goal min:METRIC on a cell"
    return "\n".join(map(_line, found))


def _line(study: Study) -> str:
    try:
        return StudyTable.of(study).line
    except DistrainError as wrong:
        return str(wrong)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else brief(value)


def _shortened(cause: str) -> str:
    if not cause:
        return ""
    return f": {cause}" if len(cause) <= LONGEST_CAUSE else f": {cause[:LONGEST_CAUSE]}…"
