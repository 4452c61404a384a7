"""Studies in the forms of the clouds: exact texts to copy, and the same forms read back."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, did_you_mean, shown
from distrain_nb.layout.yamls import data_yaml
from distrain_nb.tuning import options
from distrain_nb.tuning.formats import ai_platform, sagemaker, vertex
from distrain_nb.tuning.formats.detect import read_study, read_study_file
from distrain_nb.tuning.formats.pieces import ImportedStudy
from distrain_nb.tuning.formats.python import has_study
from distrain_nb.tuning.spec import Search, StudySpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "FORMS",
    "ImportedStudy",
    "StudyForm",
    "form_of",
    "has_study",
    "read_study",
    "read_study_file",
]


@dataclass(frozen=True)
class StudyForm:
    """A form that a study can be copied in. `text` raises OptionError for what has no sense."""

    name: str
    title: str
    places: tuple[str, ...]
    text: Callable[[StudySpec], str]

    def left_out(self, spec: StudySpec) -> tuple[str, ...]:
        """Name the parts of a study that this form has no place for, such as `initial` or
        `lr.default`."""
        text = self.text(spec)
        return tuple(name for name, without in _without(spec) if self.text(without) == text)


def _without(spec: StudySpec) -> Iterator[tuple[str, StudySpec]]:
    """Yield the study without each of the things that were chosen, by their names."""
    yield "trials", spec.edited(trials=spec.trials + 1)
    if spec.search.algorithm not in (None, "gp"):  # which is what a service calls Bayesian
        yield "search", spec.edited(search=Search(None, spec.search.seed))
    if spec.search.seed is not None:
        yield "search.seed", spec.edited(search=Search(spec.search.algorithm))
    for name in ("stopping", "max_failed", "initial", "noise", "measurement"):
        if getattr(spec, name):
            yield name, spec.edited(**{name: getattr(StudySpec, name)})
    for field in fields(spec.end):
        if getattr(spec.end, field.name) is not None:
            yield f"end.{field.name}", spec.edited(end=replace(spec.end, **{field.name: None}))
    for number, goal in enumerate(spec.goals[1:], 1):
        yield (
            f"goal {goal.metric}",
            spec.edited(goals=spec.goals[:number] + spec.goals[number + 1 :]),
        )
    for number, parameter in enumerate(spec.parameters):
        changes = {"condition": None, "scale": "linear"}
        for name, plain in changes.items():
            if getattr(parameter, name) != plain:
                changed = replace(parameter, **{name: plain})  # type: ignore[arg-type]
                yield f"{parameter.name}.{name}", _with(spec, number, changed)
        if parameter.domain.default is not None:
            bare = replace(parameter, domain=replace(parameter.domain, default=None))
            yield f"{parameter.name}.default", _with(spec, number, bare)


def _with(spec: StudySpec, number: int, parameter: object) -> StudySpec:
    parameters = (*spec.parameters[:number], parameter, *spec.parameters[number + 1 :])
    return spec.edited(parameters=parameters)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _command(spec: StudySpec) -> str:
    """Return a comment with the command's line: it counts trials by its own options."""
    return (
        "# gcloud ai hp-tuning-jobs create --config=FILE --region=LOCATION --display-name=JOB_NAME"
        f" --max-trial-count={spec.trials} --parallel-trial-count={spec.parallel}\n"
    )


FORMS: tuple[StudyForm, ...] = (
    StudyForm(
        "vertex-json",
        "HyperparameterTuningJob (JSON)",
        ("vertex",),
        lambda spec: _json(vertex.tuning_job(spec)),
    ),
    StudyForm(
        "vertex-yaml",
        "gcloud ai hp-tuning-jobs create --config",
        ("vertex",),
        lambda spec: _command(spec) + data_yaml(vertex.tuning_job(spec)),
    ),
    StudyForm(
        "ai-platform-yaml",
        "config.yaml",
        ("ai-platform",),
        lambda spec: data_yaml(ai_platform.training_input(spec)),
    ),
    StudyForm(
        "sagemaker-json",
        "HyperParameterTuningJobConfig (JSON)",
        ("sagemaker",),
        lambda spec: _json(sagemaker.tuning_config(spec)),
    ),
    StudyForm("yaml", "YAML", ("local", "vertex", "sagemaker", "ai-platform"), options.to_yaml),
)


def form_of(name: str) -> StudyForm:
    """Return the form of a name. Raises OptionError with those that there are."""
    forms = {form.name: form for form in FORMS}
    if name not in forms:
        hint = did_you_mean(name, forms, ".")
        raise OptionError(f"no form {shown(name)}{hint} There are {', '.join(forms)}")
    return forms[name]
