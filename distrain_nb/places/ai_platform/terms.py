"""AI Platform Training, as layouts know it: it has ended, and Vertex AI takes its layouts."""

from __future__ import annotations

import re

from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats.form import CommandForm, Export, MappingForm
from distrain_nb.layout.place import Place, Successor
from distrain_nb.layout.pool import Role
from distrain_nb.layout.text import printed
from distrain_nb.layout.words import heading
from distrain_nb.places.ai_platform import rules  # noqa: F401  (importing it registers its rules)
from distrain_nb.places.ai_platform.forms.gcloud import COMMAND, from_training, training_command
from distrain_nb.places.ai_platform.forms.training_input import from_training_input, training_input
from distrain_nb.places.ai_platform.offers import AiPlatformOffers
from distrain_nb.places.ai_platform.successor import no_jobs, on_vertex
from distrain_nb.places.vertex.terms import CLOUD_FIELDS, MACHINE_FIELDS

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
