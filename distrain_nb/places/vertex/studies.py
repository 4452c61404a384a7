"""Vertex AI, as studies know it."""

from __future__ import annotations

from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats.form import as_json
from distrain_nb.places.vertex.forms import study
from distrain_nb.places.vertex.forms.study import from_tuning_job, tuning_job
from distrain_nb.places.vertex.rules.study import findings
from distrain_nb.tuning.place import StudyForm, StudyPlace
from distrain_nb.tuning.spec import StudySpec


def _command(spec: StudySpec) -> str:
    """Return a comment with the command's line: it counts trials by its own options."""
    return (
        "# gcloud ai hp-tuning-jobs create --config=FILE --region=LOCATION --display-name=JOB_NAME"
        f" --max-trial-count={spec.trials} --parallel-trial-count={spec.parallel}\n"
    )


STUDIES = StudyPlace(
    findings,
    (
        StudyForm(
            "vertex-json",
            "HyperparameterTuningJob (JSON)",
            lambda spec: as_json(tuning_job(spec)),
        ),
        StudyForm(
            "vertex-yaml",
            "gcloud ai hp-tuning-jobs create --config",
            lambda spec: _command(spec) + data_yaml(tuning_job(spec)),
        ),
    ),
    dict.fromkeys(("studySpec", "study_spec", "metrics"), from_tuning_job),
    (
        "a HyperparameterTuningJob or StudySpec of Vertex AI in JSON or YAML",
        "a HyperparameterTuningJob of its SDK in Python",
    ),
    study.STUDIES,
)
