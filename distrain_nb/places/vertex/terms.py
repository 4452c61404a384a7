"""Vertex AI, as layouts know it. AI Platform Training shares what is Google's."""

from __future__ import annotations

import re

from distrain_nb.layout.formats.form import CommandForm, Export, MappingForm, PythonForm, as_json
from distrain_nb.layout.place import RETRIES, Place
from distrain_nb.layout.pool import Role
from distrain_nb.layout.yamls import data_yaml
from distrain_nb.places.kubernetes import forms as kubernetes
from distrain_nb.places.vertex.forms.gcloud import COMMAND, custom_job_command, from_custom_job
from distrain_nb.places.vertex.forms.python import PASTE, POSITIONS, from_vertex, is_for_vertex
from distrain_nb.places.vertex.forms.specs import custom_job_spec, from_specs
from distrain_nb.places.vertex.offers import VertexOffers

# importing them registers their rules
from distrain_nb.places.vertex.rules import (  # noqa: F401
    accelerators,
    disks,
    reduction,
    regions,
    scheduling,
    tpu,
)

MACHINE_FIELDS = frozenset(
    ["machine", "disk_gb", "image", "accelerator", "accelerator_count", "disk_type"]
)
CLOUD_FIELDS = frozenset(
    ["region", "framework", "image", "launcher", "ranks_per_replica", "timeout"]
)
_KEYS = ("workerPoolSpecs", "jobSpec", "worker_pool_specs", "job_spec")
_PYTHON = re.compile(
    r"\bCustom\w*Job(\.from_local_script)?\(|\bHyperparameterTuningJob\(|ParameterSpec\("
    r"|\b(worker_pool_specs?|machine_type|machine_spec|job_spec|custom_job|replica_count)\s*="
)


def _is_job(value: object) -> bool:
    return isinstance(value, list) or (
        isinstance(value, dict) and not value.keys().isdisjoint(_KEYS)
    )


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
        Export("vertex-yaml", "workerPoolSpecs (YAML)", lambda it: data_yaml(custom_job_spec(it))),
        Export("vertex-gcloud", COMMAND, lambda it: custom_job_command(it) + "\n"),
        *kubernetes.EXPORTS,
    ),
    readers=(
        MappingForm("workerPoolSpecs in JSON or YAML", _is_job, from_specs),
        CommandForm(
            f"`{COMMAND}`", COMMAND, re.compile(r"\bcustom-jobs\s+create\b"), from_custom_job
        ),
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
