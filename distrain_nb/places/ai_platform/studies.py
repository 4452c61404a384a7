"""AI Platform Training, as studies know it."""

from __future__ import annotations

from distrain_nb.layout.yamls import data_yaml
from distrain_nb.places.ai_platform.study import from_hyperparameters, training_input
from distrain_nb.places.ai_platform.study_rules import findings
from distrain_nb.tuning.place import StudyForm, StudyPlace

STUDIES = StudyPlace(
    findings,
    (StudyForm("ai-platform-yaml", "config.yaml", lambda spec: data_yaml(training_input(spec))),),
    dict.fromkeys(("trainingInput", "params"), from_hyperparameters),
    ("AI Platform's config.yaml",),
)
