"""SageMaker, as studies know it."""

from __future__ import annotations

from distrain_nb.layout.formats.form import as_json
from distrain_nb.places.sagemaker.forms import study
from distrain_nb.places.sagemaker.forms.study import from_tuning_config, tuning_config
from distrain_nb.places.sagemaker.rules.study import findings
from distrain_nb.tuning.place import StudyForm, StudyPlace

_KEYS = ("HyperParameterTuningJobConfig", "ParameterRanges", "ResourceLimits")

STUDIES = StudyPlace(
    findings,
    (
        StudyForm(
            "sagemaker-json",
            "HyperParameterTuningJobConfig (JSON)",
            lambda spec: as_json(tuning_config(spec)),
        ),
    ),
    dict.fromkeys(_KEYS, from_tuning_config),
    (
        "SageMaker's HyperParameterTuningJobConfig in JSON",
        "a HyperparameterTuner of its SDK in Python",
    ),
    study.STUDIES,
)
