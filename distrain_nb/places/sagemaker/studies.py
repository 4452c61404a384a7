"""SageMaker, as studies know it."""

from __future__ import annotations

import json

from distrain_nb.places.sagemaker.forms import study_python
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
            lambda spec: json.dumps(tuning_config(spec), indent=2, ensure_ascii=False) + "\n",
        ),
    ),
    dict.fromkeys(_KEYS, from_tuning_config),
    (
        "SageMaker's HyperParameterTuningJobConfig in JSON",
        "a HyperparameterTuner of its SDK in Python",
    ),
    study_python.STUDIES,
)
