"""Answers to a page about a study, by HTTP or through the kernel: one module gives both.

Their fields have the names of `page/src/protocol.d.ts`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.errors import OptionError, shown
from distrain_nb.run.metrics.finite import to_json
from distrain_nb.study.charts.drawing import StudyDrawing
from distrain_nb.study.summary import summary_of, value_text
from distrain_nb.types import Json

if TYPE_CHECKING:
    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.study.importances import Importances
    from distrain_nb.study.study import Study
    from distrain_nb.study.summary import StudySummary
    from distrain_nb.study.trial import StudyTrial

    Query = Mapping[str, str]

ENDING_TRIALS = 50


def page_of(
    summary: StudySummary, importances: Mapping[str, float], known_version: str = ""
) -> Answer:
    """Return the study with its trials and charts; None for both where the page has `seen` all."""
    state = summary.as_json()
    version = _version(state, summary.trials, importances)
    charts = trials = None
    if version != known_version:
        trials = [trial.as_json for trial in summary.trials]
        drawing = StudyDrawing(summary, importances)
        axes = [axis.as_json() for axis in drawing.axes]
        charts = {"sheet": drawing.sheet(), "axes": axes, "shares": drawing.shares()}
    return {"seen": version, "summary": {**state, "trials": trials}, "charts": charts}


def _version(
    state: Mapping[str, Json], trials: Iterable[StudyTrial], importances: Mapping[str, float]
) -> str:
    """Return a key that changes with anything but the time."""
    lasting = {name: value for name, value in state.items() if name not in ("now", "left")}
    text = to_json([lasting, dict(importances)])
    parts = (text.encode(), *(trial.digest for trial in trials))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def answer(study: Study, importances: Importances, query: Query) -> Answer:
    """State, trials and charts; see `page_of`. It is the `end` when no more will come. Raises
    RunUnreadable."""
    summary = summary_of(study)
    over = summary.final
    importances.of(study.spec, summary.trials, last=over)
    end = over and not importances.computing
    shares = importances.of(study.spec, summary.trials, last=over)
    return {**page_of(summary, shares, query.get("seen", "")), "end": end}


def end_answer(study: Study) -> Answer:
    """Answer with what a document has of a study that has ended: its state, its newest trials."""
    now = summary_of(study)
    trials = [_trial_line(trial) for trial in now.trials[::-1][:ENDING_TRIALS]]
    parts = (now.line, now.note, now.error, *trials)
    text = "\n".join(escapes.plain(part) for part in parts if part)
    return {"final": now.final, "text": text}


def _trial_line(trial: StudyTrial) -> str:
    values = {**trial.params, **trial.goals}
    words = (f"{name}={value_text(value)}" for name, value in values.items())
    return f"trial {trial.number}, {trial.state}: {', '.join(words)}"


def apply_action(study: Study, action: str, query: Query) -> None:
    """Stop the study or a trial, or want more trials; see `ACTIONS`. Raises OptionError."""
    try:
        ACTIONS[action](study, query)
    except KeyError as error:
        raise OptionError(str(error.args[0])) from None


def _number(query: Query, name: str) -> int:
    text = query.get(name, "")
    if not re.fullmatch("[0-9]{1,9}", text):
        raise OptionError(f"invalid {name} {shown(text)}: expected a whole number")
    return int(text)


ACTIONS: dict[str, Callable[[Study, Query], None]] = {
    "cancel": lambda study, _: study.cancel(),
    "stop": lambda study, query: study.stop(_number(query, "trial")),
    "more": lambda study, query: study.more(_number(query, "trials")),
}
