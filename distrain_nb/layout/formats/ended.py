"""AI Platform's service has ended: its layouts are read and written, and run on Vertex AI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout.formats.gcloud import training_command
from distrain_nb.layout.options import in_cell, line
from distrain_nb.layout.successor import on_vertex

if TYPE_CHECKING:
    from distrain_nb.layout.layout import Layout


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
