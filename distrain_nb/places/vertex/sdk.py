"""Jobs as google-cloud-aiplatform knows them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.sdk import sdk_required
from distrain_nb.types import Value

if TYPE_CHECKING:
    from distrain_nb.places.vertex.plan import VertexSpec

_NAME = re.compile(
    r"projects/(?P<project>[^/]+)/locations/(?P<region>[a-z0-9-]+)"
    r"/(?P<kind>customJobs|trainingPipelines|hyperparameterTuningJobs)/\d+"
)


def foreign(job: object) -> VertexSpec | None:
    """Return the spec of an `aiplatform.CustomJob`, a training job (pipeline), an
    `aiplatform.HyperparameterTuningJob`, or its resource name."""
    match = _NAME.fullmatch(job if isinstance(job, str) else _resource_name(job))
    if match is None:
        return None
    from distrain_nb.places.vertex.plan import VertexSpec

    return VertexSpec(
        job=match[0],
        project=match["project"],
        region=match["region"],
        pipeline=match["kind"] == "trainingPipelines",
        study=match["kind"] == "hyperparameterTuningJobs",
    )


def sdk_object(name: str) -> Value:
    """Return the `CustomJob`, or for a pipeline the `CustomTrainingJob`, of a resource name.

    Raises DistrainError.
    """
    with sdk_required("vertex"):
        from google.cloud import aiplatform

        from distrain_nb.places.vertex.client import plain_words
    place = _NAME.fullmatch(name)
    assert place is not None, name
    pipeline = place["kind"] == "trainingPipelines"
    kind = aiplatform.CustomTrainingJob if pipeline else aiplatform.CustomJob
    with plain_words("ask for the job"):
        return kind.get(name, project=place["project"], location=place["region"])


def _resource_name(job: object) -> str:
    try:
        return str(getattr(job, "resource_name", ""))
    except RuntimeError:  # the SDK's: it has not been submitted
        return ""
