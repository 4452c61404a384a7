"""AI Platform Training, as studies know it."""

from __future__ import annotations

from collections.abc import Iterator

from distrain_nb.findings import Finding
from distrain_nb.layout.files import data_yaml
from distrain_nb.places.ai_platform.forms.study import from_hyperparameters, training_input
from distrain_nb.tuning.place import StudyForm, StudyPlace
from distrain_nb.tuning.rules.places import (
    end_names,
    left_out,
    no_algorithm,
    no_conditions,
    no_defaults,
    no_first_trials,
    no_service_choices,
    one_goal,
    positive_reverse_log,
)
from distrain_nb.tuning.rules.repairs import error, joined, setting
from distrain_nb.tuning.spec import MedianStopping, Search, StudyEnd, StudySpec

_TITLE = "AI Platform"


def findings(spec: StudySpec) -> Iterator[Finding]:
    """Check a study against what the service had."""
    yield from positive_reverse_log(spec, _TITLE)
    yield from no_algorithm(spec, ("tpe",), _TITLE)
    yield from no_first_trials(spec, _TITLE)
    yield from one_goal(spec, _TITLE)
    yield from no_conditions(spec, _TITLE)
    yield from no_defaults(spec, _TITLE)
    if spec.search.seed is not None:
        yield left_out("--search", _TITLE, "a seed", search=Search(spec.search.algorithm, None))
    yield from no_service_choices(spec, _TITLE)
    if spec.stopping not in (None, MedianStopping()):
        fix = setting("Leave it to the service", stopping=MedianStopping())
        yield error("--stop", "stop-place", f"{_TITLE} has only its own rule for stopping", fix)
    if spec.end != StudyEnd():
        yield left_out("--end", _TITLE, joined(end_names(spec.end)), end=StudyEnd())


STUDIES = StudyPlace(
    findings,
    (StudyForm("ai-platform-yaml", "config.yaml", lambda spec: data_yaml(training_input(spec))),),
    dict.fromkeys(("trainingInput", "params"), from_hyperparameters),
    ("AI Platform's config.yaml",),
)
