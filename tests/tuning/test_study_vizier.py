"""Google's open-source Vizier reads our `StudySpec`s, and means the same by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import ParseDict
from hypothesis import given
from study_strategies import examples, studies
from vizier._src.service import study_pb2
from vizier.service import pyvizier

from distrain_nb.places.vertex.forms.study import study_spec
from distrain_nb.tuning.spec import Categorical, Discrete, Double, Integer, StudySpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.tuning.spec import Parameter

SCALES = {"LINEAR": "linear", "LOG": "log", "REVERSE_LOG": "reverse-log"}


@examples
@given(studies())
def test_vizier_means_the_same(spec: StudySpec) -> None:
    known = {name: study_spec(spec)[name] for name in ("metrics", "parameters")}
    message = ParseDict(known, study_pb2.StudySpec())
    found = pyvizier.StudyConfig.from_proto(message)
    metrics = {each.name: each.goal.name for each in found.metric_information}
    assert metrics == {each.metric: f"{each.direction.upper()}IMIZE" for each in spec.goals}
    assert dict(_read(found.search_space.parameters)) == {
        each.name: _described(each) for each in spec.parameters
    }


def _read(parameters: Any) -> Iterator[tuple[str, Any]]:
    """Vizier has a parameter once for each value of its parent."""
    alike: dict[str, list[Any]] = {}
    for each in parameters:
        alike.setdefault(each.name, []).append(each)
    for name, (each, *_) in alike.items():
        ranged = each.type.name in ("DOUBLE", "INTEGER")
        values = each.bounds if ranged else tuple(sorted(each.feasible_values))
        scale = SCALES[each.scale_type.name] if each.scale_type else "linear"
        parents = {value for one in alike[name] for value in one.matching_parent_values}
        yield name, (each.type.name, values, scale, each.default_value, parents)
        yield from _read(each.child_parameter_configs)


def _described(parameter: Parameter) -> Any:
    domain, condition = parameter.domain, parameter.condition
    kinds = {Double: "DOUBLE", Integer: "INTEGER", Discrete: "DISCRETE", Categorical: "CATEGORICAL"}
    values: Any = (
        (domain.low, domain.high)
        if isinstance(domain, (Double, Integer))
        else tuple(sorted(domain.values))
    )
    parents = set(condition.values) if condition else set()
    return kinds[type(domain)], values, parameter.scale, domain.default, parents
