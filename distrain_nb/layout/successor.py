"""The layout of AI Platform, whose service has ended, on Vertex AI, which succeeds it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.rules import check

if TYPE_CHECKING:
    from distrain_nb.findings import Finding
    from distrain_nb.layout.layout import Layout

MOST_REPAIRS = 20


def on_vertex(layout: Layout) -> Layout:
    """Return the layout for Vertex AI, with the smallest repair of each thing that isn't there any
    more, such as a scale tier or a legacy machine type. What has no repair stays as it was."""
    succeeding = replace(layout, on="vertex")
    for _ in range(MOST_REPAIRS):
        gone = [f for f in check(succeeding) if f.fixes and _is_gone(f)]
        if not gone:
            break
        succeeding = gone[0].fixes[0].apply(succeeding)
    return succeeding


def _is_gone(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR or finding.code == "tier-elsewhere"
