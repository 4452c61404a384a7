"""What a page is told of a study, by the names that `page/src/protocol.d.ts` has for it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from distrain_nb.run.metrics.finite import to_json
from distrain_nb.study.charts.drawing import StudyDrawing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.study.summary import StudySummary
    from distrain_nb.study.trial import StudyTrial
    from distrain_nb.types import Json


def page_of(summary: StudySummary, importances: Mapping[str, float], seen: str = "") -> Answer:
    """Return the study with its trials and charts; None for both where the page has `seen` all."""
    told = summary.as_json()
    version = _version(told, summary.trials, importances)
    charts = trials = None
    if version != seen:
        trials = [trial.as_json for trial in summary.trials]
        drawing = StudyDrawing(summary, importances)
        axes = [axis.as_json() for axis in drawing.axes]
        charts = {"sheet": drawing.sheet(), "axes": axes, "shares": drawing.shares()}
    return {"seen": version, "summary": {**told, "trials": trials}, "charts": charts}


def _version(
    told: Mapping[str, Json], trials: Iterable[StudyTrial], importances: Mapping[str, float]
) -> str:
    """What changes with anything but the time."""
    lasting = {name: value for name, value in told.items() if name not in ("now", "left")}
    text = to_json([lasting, dict(importances)])
    parts = (text.encode(), *(trial.digest for trial in trials))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]
