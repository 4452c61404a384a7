"""The charts of a study as figures of plotly's Python package, by the names that a page gives them.

Colours are those of the page's light theme (`page/styles/study.css`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from distrain_nb.run.charts.figures import require_plotly
from distrain_nb.study.charts.axes import parameter_axes
from distrain_nb.study.charts.curves import LearningCurves
from distrain_nb.study.charts.drawing import PARALLEL
from distrain_nb.study.files import TrialState
from distrain_nb.study.summary import best_so_far, trial_ranks, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    from distrain_nb.study.summary import StudySummary
    from distrain_nb.study.trial import StudyTrial

TOP, GOOD, POOR = "#d9480f", "#1864ab", "#c5d5e4"
STOPPED, RUNNING, FAILED = "#9aa4ae", "#0f9d58", "#cf222e"
_OF_STATES = {TrialState.STOPPED: STOPPED, TrialState.RUNNING: RUNNING, TrialState.FAILED: FAILED}
_FAINT = (TrialState.STOPPED, TrialState.FAILED, TrialState.CANCELLED)
_SCALE = ((0.0, POOR), (1.0, GOOD))


def figures(summary: StudySummary, importances: Mapping[str, float]) -> dict[str, go.Figure]:
    """Return a history for each goal, by its name, `learning curves of loss`, `loss by lr` for each
    parameter, parallel coordinates, and `importance`, the last and the second where there are any.
    Raises DistrainError where plotly is missing.
    """
    require_plotly("study.figures")
    charts: dict[str, go.Figure] = {}
    names = [axis.name for axis in parameter_axes(summary.spec)]
    for goal in summary.spec.goals:
        valued = [trial for trial in summary.trials if goal.metric in trial.goals]
        dots = _dots(summary, valued, goal.metric, [trial.number for trial in valued])
        best = best_so_far(summary.trials, goal)
        line = {
            "type": "scatter", "mode": "lines", "name": "best",
            "line": {"color": TOP, "shape": "hv"},
            "x": [*(number for number, _ in best), summary.trials[-1].number] if best else [],
            "y": [*(value for _, value in best), best[-1][1]] if best else [],
        }  # fmt: skip
        charts[goal.metric] = _figure([dots, line], "trial", goal.metric)
        curves = LearningCurves(summary.trials, goal.metric, summary.goals)
        if curves:
            charts[curves.name] = _learning(summary, curves)
        for name in names:
            values = [trial.params.get(name) for trial in valued]
            slice_of = _dots(summary, valued, goal.metric, values)
            charts[f"{goal.metric} by {name}"] = _figure([slice_of], name, goal.metric)
    charts[PARALLEL] = _parallel(summary, names)
    if importances:
        rows = list(importances.items())[::-1]
        bars = {
            "type": "bar", "orientation": "h", "marker": {"color": GOOD},
            "x": [share for _, share in rows], "y": [name for name, _ in rows],
        }  # fmt: skip
        charts["importance"] = _figure([bars], f"importance for {summary.goals[0]}", "")
    return charts


def _dots(
    summary: StudySummary, trials: Sequence[StudyTrial], goal: str, x: Sequence[object]
) -> dict[str, object]:
    """Return a dot for each trial, with its number and state at the mouse."""
    shades = trial_ranks(summary.trials, summary.spec.goals[0])
    front = {trial.number for trial in summary.front}
    edges = [
        TOP if trial.number in front else _OF_STATES.get(trial.state, GOOD) for trial in trials
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "trials",
        "x": x,
        "y": [value_of(trial, goal) for trial in trials],
        "text": [f"trial {trial.number}, {trial.state}" for trial in trials],
        "marker": {
            "size": [11 if trial.number in front else 7 for trial in trials],
            "color": [shades.get(trial.number, 0.0) for trial in trials],
            "colorscale": _SCALE,
            "cmin": 0,
            "cmax": 1,
            "line": {"color": edges, "width": 2},
        },
    }


def _learning(summary: StudySummary, curves: LearningCurves) -> go.Figure:
    """Return a line for each trial, the best ones above the others."""
    front = {trial.number for trial in summary.front}
    shown = (trial for trial in summary.trials if trial.number in curves.points)
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"trial {trial.number}, {trial.state}",
            "x": curves.points[trial.number]["step"],
            "y": curves.points[trial.number]["value"],
            "opacity": 1.0 if trial.number in front else 0.3 if trial.state in _FAINT else 0.6,
            "line": {
                "color": TOP if trial.number in front else _OF_STATES.get(trial.state, GOOD),
                "width": 3 if trial.number in front else 1.5,
            },
        }
        for trial in sorted(shown, key=lambda trial: trial.number in front)
    ]
    chart = _figure(lines, "step", curves.axis.name)
    low, high = curves.axis.low, curves.axis.high
    is_log = curves.axis.kind == "log"
    ends = [math.log10(low), math.log10(high)] if is_log else [low, high]
    bounds = {"yaxis_range": ends} if curves.is_cut else {}
    kind = "log" if is_log else "linear"
    return chart.update_layout(showlegend=False, hovermode="closest", yaxis_type=kind, **bounds)


def _parallel(summary: StudySummary, names: Sequence[str]) -> go.Figure:
    """Return a line for each trial that has all goals, through its parameters and goals."""
    trials = [trial for trial in summary.trials if {*summary.goals} <= trial.goals.keys()]
    shades = trial_ranks(summary.trials, summary.spec.goals[0])
    dimensions = [_dimension(name, [trial.params.get(name) for trial in trials]) for name in names]
    dimensions += [_dimension(g, [value_of(trial, g) for trial in trials]) for g in summary.goals]
    colour = [shades.get(trial.number, 0.0) for trial in trials]
    lines = {"color": colour, "colorscale": _SCALE, "cmin": 0, "cmax": 1}
    return _figure([{"type": "parcoords", "line": lines, "dimensions": dimensions}], "", "")


def _dimension(name: str, values: Sequence[object]) -> dict[str, object]:
    """Return an axis of numbers, or of words in the order of their first appearance."""
    if all(isinstance(value, int | float) for value in values):
        return {"label": name, "values": list(values)}
    words = list(dict.fromkeys(map(str, values)))
    places = [words.index(str(value)) for value in values]
    ticks = {"tickvals": list(range(len(words))), "ticktext": words}
    return {"label": name, "values": places, **ticks}


def _figure(traces: Sequence[Mapping[str, object]], x: str, y: str) -> go.Figure:
    import plotly.graph_objects as go

    charts = go.Figure([dict(trace) for trace in traces])
    axes = {"xaxis_title_text": x, "yaxis_title_text": y} if x or y else {}
    return charts.update_layout(template="plotly_white", **axes)
