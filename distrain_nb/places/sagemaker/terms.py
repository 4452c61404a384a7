"""SageMaker, as layouts know it."""

from __future__ import annotations

import re

from distrain_nb.layout.formats.form import Export, MappingForm, PythonForm, as_json
from distrain_nb.layout.place import Place
from distrain_nb.layout.pool import Role
from distrain_nb.places.kubernetes import forms as kubernetes
from distrain_nb.places.sagemaker.forms.estimator import estimator_text
from distrain_nb.places.sagemaker.forms.python import POSITIONS, from_sagemaker, is_for_sagemaker
from distrain_nb.places.sagemaker.forms.request import from_training_job, training_job
from distrain_nb.places.sagemaker.forms.trainer import trainer_text
from distrain_nb.places.sagemaker.offers import SageMakerOffers

# importing them registers their rules
from distrain_nb.places.sagemaker.rules import (
    alternatives,  # noqa: F401
    distributions,  # noqa: F401
    instances,  # noqa: F401
    limits,  # noqa: F401
)

_KEYS = ("ResourceConfig", "AlgorithmSpecification")
_PYTHON = re.compile(
    r"\bModelTrainer\(|\bEstimator\(|\b(train_)?instance_(type|count|groups)\s*="
    r"|\.set_hyperparameters\("
)


def _is_request(value: object) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint(_KEYS)


PLACE = Place(
    "sagemaker",
    "SageMaker",
    (Role.PRIMARY, Role.WORKERS),
    frozenset(
        [
            *("region", "framework", "image", "launcher", "ranks_per_replica", "timeout"),
            *("mpi_options", "scheduling", "max_wait", "distribution", "checkpoint"),
            *("signal_before", "retries"),
        ]
    ),
    frozenset(["machine", "disk_gb", "image", "alternatives"]),
    tunes=True,
    offers=SageMakerOffers(),
    exports=(
        Export("sagemaker-python", "Estimator (Python SDK 2)", estimator_text),
        Export("sagemaker-trainer", "ModelTrainer (Python SDK 3)", trainer_text),
        Export(
            "sagemaker-json",
            "CreateTrainingJob (JSON)",
            lambda it: as_json(training_job(it)),
        ),
        *kubernetes.EXPORTS,
    ),
    readers=(
        PythonForm(
            "a SageMaker estimator in Python",
            _PYTHON,
            is_for_sagemaker,
            POSITIONS,
            from_sagemaker,
            "no call with the arguments instance_type and instance_count",
        ),
        MappingForm("a CreateTrainingJob request in JSON", _is_request, from_training_job),
    ),
)
