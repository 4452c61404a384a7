"""What a page is told of a study, by the names that `page/src/protocol.d.ts` has for it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from distrain_nb.run.metrics.finite import to_json
from distrain_nb.study.charts.drawing import StudyDrawing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.study.summary import StudySummary
    from distrain_nb.types import Json


def page_of(summary: StudySummary, importances: Mapping[str, float], seen: str = "") -> Answer:
    """The study with its charts; without these where the page has `seen` all that there is."""
    told = summary.as_json()
    version = _version(told, importances)
    charts = None
    if version != seen:
        drawing = StudyDrawing(summary, importances)
        axes = [axis.as_json() for axis in drawing.axes]
        charts = {"sheet": drawing.sheet(), "axes": axes, "shares": drawing.shares()}
    return {"seen": version, "summary": told, "charts": charts}


def _version(told: Mapping[str, Json], importances: Mapping[str, float]) -> str:
    """What changes with anything but the time."""
    lasting = {name: value for name, value in told.items() if name not in ("now", "left")}
    text = to_json([lasting, dict(importances)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
