"""The charts of a study: HTML around drawings (SVG), as the charts of runs have it.

A page shows these very drawings, and answers to the reader on them (`page/src/study/charts.js`):
what belongs to a trial has its number in `data-trial`. Sizes are those of `page/styles/study.css`.
"""

from __future__ import annotations

import html
import math
from functools import cached_property
from typing import TYPE_CHECKING

from distrain_nb.run.charts.drawing import (
    SIDE,
    Plot,
    chart,
    ground,
    group,
    left_room,
    plot_with_ticks,
)
from distrain_nb.run.summary import plural, short_number
from distrain_nb.study.charts.axes import ValueAxis, goal_axis, parameter_axes
from distrain_nb.study.charts.curves import LearningCurves
from distrain_nb.study.files import TrialState
from distrain_nb.study.importances import method
from distrain_nb.study.summary import best_so_far, trial_ranks, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from distrain_nb.study.summary import StudySummary
    from distrain_nb.study.trial import StudyTrial
    from distrain_nb.tuning.spec import Goal

MOST_TRIALS = 500  # of which more are drawn in no chart: the newest, and the best
MOST_AXES = 10
SHADES = 10  # of how good a trial is
PARALLEL = "parallel coordinates"
ABSENT = -0.07  # where a line passes by a parameter that its trial hasn't: below the axis
ENDS = (10, 20, 50)  # times powers of ten, up to which trials have room
_LEGEND = (
    (TrialState.SUCCEEDED, "succeeded, the better the stronger", "--dn-good"),
    (TrialState.STOPPED, "stopped early", "--dn-halted"),
    (TrialState.RUNNING, "running", "--dn-going"),
    (TrialState.FAILED, "failed", "--dn-bad"),
)


class StudyDrawing:
    """The charts of a study at one time, all trials by their places on the same axes."""

    def __init__(self, summary: StudySummary, importances: Mapping[str, float]) -> None:
        self._summary = summary
        self._importances = importances
        self._front = {trial.number for trial in summary.front}
        self._trials = _drawn(summary.trials, self._front)
        self._parameters = parameter_axes(summary.spec)
        self._goals = [
            goal_axis(goal, (value_of(trial, goal) for trial in self._trials))
            for goal in summary.goals
        ]
        self._of_goals = frozenset(map(id, self._goals))
        self._shares: dict[tuple[int, int], float | None] = {}
        self._shades = trial_ranks(summary.trials, summary.spec.goals[0])

    @property
    def axes(self) -> list[ValueAxis]:
        """Return the axes of parallel coordinates: goals and the most important parameters."""
        parameters = self._parameters
        if len(parameters) > MOST_AXES:
            shares = self._importances
            first = sorted(parameters, key=lambda axis: -shares.get(axis.name, 0.0))[:MOST_AXES]
            parameters = [axis for axis in parameters if axis in first]
        return [*parameters, *self._goals]

    def shares(self) -> dict[str, list[float | None]]:
        """Return where each trial stands on each of these axes, by its number."""
        axes = self.axes
        return {
            str(trial.number): [_rounded(self._share(trial, axis)) for axis in axes]
            for trial in self._trials
        }

    def sheet(self) -> str:
        """Return all charts; nothing before there is a trial with a value."""
        if not any(trial.goals for trial in self._trials):
            return ""
        goals = list(zip(self._summary.spec.goals, self._goals, strict=True))
        first = [self._history(goal, axis) for goal, axis in goals]
        first += [self._bars()] if self._importances else []
        slices = [
            group(
                f"{goal.metric} by parameter" if len(goals) > 1 else "",
                [self._slice(parameter, axis) for parameter in self._parameters],
            )
            for goal, axis in goals
        ]
        goals_of = self._summary.goals
        curves = [LearningCurves(self._trials, goal, goals_of) for goal in goals_of]
        curves = [drawn for drawn in curves if drawn]
        lines = group("", [self._learning(drawn) for drawn in curves]) if curves else ""
        axes = [*self._goals, *(drawn.axis for drawn in curves)]
        texts = [text for axis in axes for _, text in axis.ticks]
        return (
            f'<div class="dn-sheet dn-study-sheet" style="--dn-left:{left_room(texts):.0f}px">'
            f"{self._legend()}{group('', first)}{lines}{group('', [self._parallel()])}"
            f"{''.join(slices)}"
            f"{self._notes()}</div>"
        )

    # -- one chart each ---------------------------------------------------------------------------

    def _history(self, goal: Goal, axis: ValueAxis) -> str:
        last = _round_end(len(self._summary.trials), self._summary.wanted)
        first = self._trials[0].number
        across = ValueAxis(
            "trial", "linear", float(min(first, 1 if first < last / 2 else first)), last
        )
        best = best_so_far(self._summary.trials, goal)
        marks = self._dots(axis, lambda trial: across.share(trial.number))
        failed = [t for t in self._trials if t.state is TrialState.FAILED]
        shares = [(t.number, across.share(t.number)) for t in failed]
        marks += "".join(
            f'<path class="dn-failure" data-trial="{number}" d="M{share * SIDE:.1f} {SIDE}v-40"/>'
            for number, share in shares
            if share is not None
        )
        line = _steps(best, self._summary.trials[-1].number, across, axis)
        rows, columns = _rows(axis), _columns(across)
        plot = Plot(f"{ground(rows)}{line}{marks}", rows, columns)
        text = f"best {short_number(best[-1][1])}" if best else ""
        return chart(
            goal.metric, text, "", plot_with_ticks(plot, f"{goal.metric} by trial, with the best")
        )

    def _slice(self, across: ValueAxis, axis: ValueAxis) -> str:
        marks = self._dots(axis, lambda trial: self._share(trial, across))
        rows = _rows(axis)
        plot = Plot(f"{ground(rows)}{marks}", rows, _columns(across))
        return chart(across.name, "", "", plot_with_ticks(plot, f"{axis.name} by {across.name}"))

    def _learning(self, curves: LearningCurves) -> str:
        """Draw learning curves: ended trials, running ones above them, the best on top."""
        ordered = sorted(
            (trial for trial in self._ordered if trial.number in curves.points),
            key=lambda t: (
                t.number in self._front,
                not t.state.final,
                t.state is TrialState.SUCCEEDED,
            ),
        )
        lines = "".join(
            f'<path class="dn-trial {self._kind(trial)}" {_mark(trial)}'
            f' d="{curves.path(trial.number)}"/>'
            for trial in ordered
        )
        rows, columns = _rows(curves.axis), _columns(curves.across)
        plot = Plot(f"{ground(rows)}{lines}", rows, columns)
        return chart(curves.name, curves.note, "", plot_with_ticks(plot, f"{curves.name} by step"))

    def _parallel(self) -> str:
        axes = self.axes
        lefts = [n / max(1, len(axes) - 1) for n in range(len(axes))]
        lines = "".join(self._line(trial, axes, lefts) for trial in self._ordered)
        posts = "".join(f"M{x * SIDE:.1f} 0V{SIDE}" for x in lefts)
        beside = "".join(
            _post(axis, x, len(axes) - 1, self._is_absent(axis))
            for axis, x in zip(axes, lefts, strict=True)
        )
        label = f"{PARALLEL}: {', '.join(axis.name for axis in axes)}"
        drawn = (
            f'<svg viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none" role="img"'
            f' aria-label="{html.escape(label)}">{lines}<path class="dn-post" d="{posts}"/></svg>'
        )
        return chart(PARALLEL, "", "", f"{drawn}{beside}")

    def _bars(self) -> str:
        """Show the bars as a table."""
        rows = "".join(
            f'<tr><th scope="row">{html.escape(name)}</th>'
            f'<td><i style="width:{share:.1%}"></i></td><td>{share:.0%}</td></tr>'
            for name, share in list(self._importances.items())[:MOST_AXES]
        )
        label = f"importance for {self._summary.goals[0]}"
        table = f'<table class="dn-shares" aria-label="{html.escape(label)}">{rows}</table>'
        return chart("importance", f"by {method()}", "", table)

    # -- what belongs to a trial ------------------------------------------------------------------

    def _dots(self, axis: ValueAxis, across: Callable[[StudyTrial], float | None]) -> str:
        """Return a dot for each trial with a goal, at a share of the width."""
        dots = []
        for trial in self._ordered:
            x, y = across(trial), self._share(trial, axis)
            if x is not None and y is not None:
                d = f"M{x * SIDE:.1f} {SIDE - y * SIDE:.1f}h0"
                dots.append(f'<path class="dn-dot {self._kind(trial)}" {_mark(trial)} d="{d}"/>')
        return "".join(dots)

    def _line(self, trial: StudyTrial, axes: Sequence[ValueAxis], lefts: Sequence[float]) -> str:
        """Up to the goals that it has."""
        places = []
        for axis, x in zip(axes, lefts, strict=True):
            share = self._share(trial, axis)
            if share is None and id(axis) in self._of_goals:
                break
            up = ABSENT if share is None else share
            places.append(f"{x * SIDE:.0f} {SIDE - up * SIDE:.0f}")
        return (
            f'<path class="dn-trial {self._kind(trial)}" {_mark(trial)} d="M{"L".join(places)}"/>'
        )

    def _kind(self, trial: StudyTrial) -> str:
        if trial.number in self._front:
            return "dn-best"
        if trial.state is TrialState.SUCCEEDED and trial.number in self._shades:
            return f"dn-q{min(SHADES - 1, int(self._shades[trial.number] * SHADES))}"
        return f"dn-is-{trial.state}"

    @cached_property
    def _ordered(self) -> list[StudyTrial]:
        """The better ones last, above the others."""
        shades = self._shades
        return sorted(
            self._trials, key=lambda t: (t.number in self._front, shades.get(t.number, -1))
        )

    def _is_absent(self, axis: ValueAxis) -> bool:
        """Return whether some trials have no such parameter."""
        return id(axis) not in self._of_goals and any(
            self._share(trial, axis) is None for trial in self._trials
        )

    def _share(self, trial: StudyTrial, axis: ValueAxis) -> float | None:
        key = (trial.number, id(axis))
        if key not in self._shares:
            of_goal = id(axis) in self._of_goals
            value = value_of(trial, axis.name) if of_goal else trial.params.get(axis.name)
            self._shares[key] = axis.share(value)
        return self._shares[key]

    # -- around them ------------------------------------------------------------------------------

    def _legend(self) -> str:
        states = {trial.state for trial in self._trials}
        entries = [(text, ink) for state, text, ink in _LEGEND if state in states]
        best = "best so far" if len(self._goals) == 1 else "Pareto front"
        entries += [(best, "--dn-top")] if self._front else []
        names = "".join(
            f'<span class="dn-series" style="--dn-ink:var({ink})">{text}</span>'
            for text, ink in entries
        )
        return f'<div class="dn-legend">{names}</div>'

    def _notes(self) -> str:
        count, drawn = len(self._summary.trials), len(self._trials)
        notes = [f"{drawn} of {plural(count, 'trial')} are drawn"] if drawn < count else []
        parameters = len(self.axes) - len(self._goals)
        if parameters < len(self._parameters):
            notes.append(f"{parameters} of {len(self._parameters)} parameters are axes")
        return "".join(f'<div class="dn-chart-note">{note}</div>' for note in notes)


def _drawn(trials: Sequence[StudyTrial], front: set[int]) -> list[StudyTrial]:
    newest = len(trials) - MOST_TRIALS
    best = set(sorted(front)[-MOST_TRIALS:])
    return [t for n, t in enumerate(trials) if n >= newest or t.number in best]


def _mark(trial: StudyTrial) -> str:
    return f'data-trial="{trial.number}"'


def _rows(axis: ValueAxis) -> list[tuple[float, str]]:
    return [(1 - share, text) for share, text in axis.ticks]


def _columns(axis: ValueAxis) -> list[tuple[float, str]]:
    return [(share, html.escape(text)) for share, text in axis.ticks]


def _post(axis: ValueAxis, x: float, gaps: int, absent: bool) -> str:
    """Return the name and the ticks of one of parallel axes, between which are so many gaps."""
    name = html.escape(axis.name)
    marks = [*axis.ticks, *([(ABSENT, "none")] if absent else [])]
    ticks = "".join(
        f'<span class="dn-tick dn-beside" style="left:{x:.2%};top:{1 - share:.2%}">'
        f"{html.escape(text)}</span>"
        for share, text in marks
    )
    style = f"left:{x:.2%};--dn-gaps:{max(1, gaps)}"
    return f'<b class="dn-axis" style="{style}" title="{name}">{name}</b>{ticks}'


def _steps(best: list[tuple[int, float]], last: int, across: ValueAxis, axis: ValueAxis) -> str:
    """Return the best so far, from trial to trial."""
    path = ""
    for number, value in best:
        x, y = across.share(number), axis.share(value)
        if x is not None and y is not None:
            up = SIDE - y * SIDE
            path += f"H{x * SIDE:.1f}V{up:.1f}" if path else f"M{x * SIDE:.1f} {up:.1f}"
    end = across.share(last)
    return f'<path class="dn-record" d="{path}H{end * SIDE:.1f}"/>' if path and end else ""


def _round_end(count: int, minimum: int) -> float:
    """Up to which trial there is room, so that an axis stays as it is for a while."""
    most = max(minimum, count, 2)
    ends = (end * 10**power for power in range(7) for end in ENDS)
    return float(min(most, next((end for end in ends if end >= count), most)))


def _rounded(share: float | None) -> float | None:
    return None if share is None or not math.isfinite(share) else round(share, 4)
