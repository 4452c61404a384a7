"""Vertex AI, which succeeds AI Platform Training: layouts moved there."""

from __future__ import annotations

from dataclasses import replace

from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout.cell_repairs import in_cell
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.rules import Rule, findings
from distrain_nb.layout.text import line
from distrain_nb.places.ai_platform.forms.gcloud import training_command

MOST_REPAIRS = 20


def on_vertex(layout: Layout) -> Layout:
    """Return the layout for Vertex AI, with the smallest repair of each thing that isn't there any
    more, such as a scale tier or a legacy machine type. What has no repair stays as it was."""
    succeeding = replace(layout, on="vertex")
    for _ in range(MOST_REPAIRS):
        gone = next((f for f in findings(succeeding, chooses=_is_gone) if f.fixes), None)
        if gone is None:
            break
        succeeding = gone.fixes[0].apply(succeeding)
    return succeeding


def _is_gone(rule: Rule) -> bool:
    return rule.severity is Severity.ERROR or rule.code == "tier-elsewhere"


def no_jobs(layout: Layout) -> OptionError:
    """Return why a job of AI Platform can't run, with the same for Vertex AI, the repair that
    writes it into the cell, and the command for AI Platform."""
    message = (
        f"--on {layout.on}: AI Platform Training takes no jobs from here\n"
        f"On Vertex AI, which succeeds it, write `{line(on_vertex(layout))}`. The command for "
        f"AI Platform itself is:\n{training_command(layout)}"
    )
    move = Fix("Run it on Vertex AI", on_vertex)
    finding = in_cell(Finding("", Severity.ERROR, "on", message, (move,)), layout)
    return OptionError(message, where=finding.where, fixes=finding.fixes)
