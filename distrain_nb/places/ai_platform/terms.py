"""AI Platform Training, as layouts know it: it has ended, and Vertex AI takes its layouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.rows import Machine
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.cell_repairs import in_cell
from distrain_nb.layout.choices import Choice
from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats.form import CommandForm, Export, MappingForm
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import Place, Successor
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.rules import Rule, findings
from distrain_nb.layout.text import line, printed
from distrain_nb.layout.words import heading
from distrain_nb.places.ai_platform import rules  # noqa: F401  (importing it registers its rules)
from distrain_nb.places.ai_platform.forms import (
    COMMAND,
    from_training,
    from_training_input,
    training_command,
    training_input,
)
from distrain_nb.places.vertex.terms import CLOUD_FIELDS, MACHINE_FIELDS, GoogleOffers


class AiPlatformOffers(GoogleOffers):
    """The machines of AI Platform Training."""

    place = "ai-platform"
    why_no_pool: ClassVar[Mapping[Role, str]] = {
        Role.REDUCERS: ": reducers are for Vertex AI and this machine"
    }

    @staticmethod
    def trains(row: Machine) -> bool:
        return row.aiplatform_training

    def machines(self, catalog: Catalog) -> Mapping[str, None]:
        return _trained_on(catalog)

    def larger(self, pool: Pool, gpus: int) -> Pool | None:
        del pool, gpus
        return None

    def choices(self, layout: Layout, field: str) -> Iterable[Choice]:
        if field != "tier":
            return super().choices(layout, field)
        rows = [row for row in current().legacy_machines.values() if row.kind == "scale_tier"]
        return [Choice(r.name, f"{r.name} · {r.note}" if r.note else r.name) for r in rows]


@lru_cache(maxsize=8)
def _trained_on(catalog: Catalog) -> Mapping[str, None]:
    modern = [row.machine_type for row in catalog.machines.values() if row.aiplatform_training]
    legacy = [row.name for row in catalog.legacy_machines.values() if row.kind == "machine"]
    return dict.fromkeys([*modern, *legacy])


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


PLACE = Place(
    "ai-platform",
    "AI Platform",
    (Role.PRIMARY, Role.WORKERS, Role.SERVERS, Role.EVALUATORS),
    CLOUD_FIELDS | {"tier"},
    MACHINE_FIELDS,
    tunes=True,
    offers=AiPlatformOffers(),
    exports=(
        Export(
            "ai-platform-yaml",
            "config.yaml",
            lambda it: data_yaml(training_input(it)),
            data=training_input,
        ),
        Export("ai-platform-gcloud", COMMAND, lambda it: training_command(it) + "\n"),
        Export(
            "successor",
            "%%distrain, the same on Vertex AI",
            lambda it: heading(printed(on_vertex(it))) + "\n",
        ),
    ),
    readers=(
        MappingForm(
            "AI Platform's config.yaml",
            lambda value: isinstance(value, dict) and "trainingInput" in value,
            from_training_input,
        ),
        CommandForm(
            f"`{COMMAND}`", COMMAND, re.compile(r"\bjobs\s+submit\s+training\b"), from_training
        ),
    ),
    successor=Successor("Vertex AI", on_vertex, no_jobs),
)
