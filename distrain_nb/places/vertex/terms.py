"""Vertex AI, as layouts know it, and the fields that it shares with AI Platform Training."""

from __future__ import annotations

import re

from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats.form import CommandForm, Export, MappingForm, PythonForm, as_json
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import RETRIES, Place
from distrain_nb.layout.pool import Role
from distrain_nb.places.kubernetes import forms as kubernetes
from distrain_nb.places.vertex.forms.gcloud import COMMAND, custom_job_command, from_custom_job
from distrain_nb.places.vertex.forms.python import (
    PASTE,
    POSITIONS,
    custom_job_text,
    from_vertex,
    is_for_vertex,
)
from distrain_nb.places.vertex.forms.rest import CREATES, REFUSED, from_request, has_empty_pool
from distrain_nb.places.vertex.forms.specs import custom_job_spec, from_specs
from distrain_nb.places.vertex.offers import VertexOffers

# importing them registers their rules
from distrain_nb.places.vertex.rules import (
    accelerators,  # noqa: F401
    disks,  # noqa: F401
    reduction,  # noqa: F401
    regions,  # noqa: F401
    scheduling,  # noqa: F401
    tpu,  # noqa: F401
)

MACHINE_FIELDS = frozenset(
    ["machine", "disk_gb", "image", "accelerator", "accelerator_count", "disk_type"]
)
CLOUD_FIELDS = frozenset(
    ["region", "framework", "image", "launcher", "ranks_per_replica", "timeout"]
)
_KEYS = ("workerPoolSpecs", "jobSpec", "worker_pool_specs", "job_spec")
_PYTHON = re.compile(
    r"\bCustom\w*Job(RunOp|Op|\.from_local_script)?\(|\bcreate_custom_training_job_\w+\("
    r"|\bHyperparameterTuningJob\(|ParameterSpec\("
    r"|\b(worker_pool_specs?|machine_type|machine_spec|job_spec|custom_job|replica_count)\s*="
)


def _is_job(value: object) -> bool:
    return isinstance(value, list) or (
        isinstance(value, dict) and not value.keys().isdisjoint(_KEYS)
    )


def _note(layout: Layout) -> str:
    spec = custom_job_spec(layout)
    return f"# {REFUSED}\n" if has_empty_pool(spec) else ""


PLACE = Place(
    "vertex",
    "Vertex AI",
    tuple(Role),
    CLOUD_FIELDS | {"mpi_options", "scheduling", "max_wait", "signal_before", *RETRIES},
    MACHINE_FIELDS | {"topology"},
    tunes=True,
    offers=VertexOffers(),
    exports=(
        Export(
            "vertex-json",
            "workerPoolSpecs (JSON)",
            lambda it: as_json(custom_job_spec(it)),
        ),
        Export(
            "vertex-yaml",
            "workerPoolSpecs (YAML)",
            lambda it: f"{_note(it)}{data_yaml(custom_job_spec(it))}",
            data=custom_job_spec,
        ),
        Export("vertex-gcloud", COMMAND, lambda it: custom_job_command(it) + "\n"),
        Export("vertex-python", "CustomJob (Python SDK)", custom_job_text),
        *kubernetes.EXPORTS,
    ),
    readers=(
        MappingForm("workerPoolSpecs in JSON or YAML", _is_job, from_specs),
        CommandForm(
            f"`{COMMAND}`", COMMAND, re.compile(r"\bcustom-jobs\s+create\b"), from_custom_job
        ),
        CommandForm("`curl …/customJobs`", "curl", CREATES, from_request, ("--data", "-d")),
        PythonForm(
            "a job of Vertex AI's SDK in Python",
            _PYTHON,
            is_for_vertex,
            POSITIONS,
            from_vertex,
            "no job for Vertex AI",
            PASTE,
        ),
        kubernetes.READER,
    ),
)
