"""Vertex AI, as studies know it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from distrain_nb.errors import shown
from distrain_nb.findings import Finding
from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats.form import as_json
from distrain_nb.places.vertex.forms import study_python
from distrain_nb.places.vertex.forms.study import from_tuning_job, tuning_job
from distrain_nb.tuning.place import StudyForm, StudyPlace
from distrain_nb.tuning.rules.places import (
    left_out,
    no_algorithm,
    no_defaults,
    no_first_trials,
    positive_reverse_log,
)
from distrain_nb.tuning.rules.repairs import error, parameter_place, renamed, setting
from distrain_nb.tuning.spec import Discrete, HyperbandStopping, MedianStopping, Search, StudySpec

_TITLE = "Vertex AI"
MOST_VALUES = 1000


def findings(spec: StudySpec) -> Iterator[Finding]:
    """Check a study against the limits of its tuning jobs."""
    yield from no_algorithm(spec, ("tpe",), _TITLE)
    yield from no_first_trials(spec, _TITLE)
    if spec.search.seed is not None:
        yield left_out("--search", _TITLE, "a seed", search=Search(spec.search.algorithm, None))
    if spec.noise:
        yield left_out("--noise", "its tuning jobs", "observation noise", noise=None)
    yield from no_defaults(spec, "its tuning jobs")
    if isinstance(spec.stopping, HyperbandStopping):
        fix = setting("Stop by the median", stopping=MedianStopping())
        yield error("--stop", "stop-place", f"{_TITLE} has no hyperband stopping", fix)
    for parameter in spec.parameters:
        domain = parameter.domain
        if isinstance(domain, Discrete) and len(domain.values) > MOST_VALUES:
            message = f"{parameter.name} has {len(domain.values)} values: {_TITLE} takes 1,000"
            yield error(parameter_place(parameter), "tune-values", message)
    yield from _without_spaces(spec)
    yield from positive_reverse_log(spec, _TITLE)


def _without_spaces(spec: StudySpec) -> Iterator[Finding]:
    """Yield names as Vertex AI has them: "must not contain whitespaces"."""
    for parameter in spec.parameters:
        if (better := _joined(parameter.name)) != parameter.name and better:
            message = f"{_TITLE} takes no spaces in a name, as in {shown(parameter.name)}"
            fix = renamed(parameter.name, better)
            yield error(parameter_place(parameter), "tune-name-place", message, fix)
    for goal in spec.goals:
        if _joined(goal.metric) not in ("", goal.metric):
            message = f"{_TITLE} takes no spaces in a metric, as in {shown(goal.metric)}"
            where = f"--goal {goal.direction}:{goal.metric}"
            yield error(where, "goal-metric-place", message)


def _joined(name: str) -> str:
    return re.sub(r"\s+", "_", name.strip())


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
    study_python.STUDIES,
)
