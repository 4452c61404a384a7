"""The rules about studies: what each sees, and that what it offers puts it right."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_strategies import DOMAINS, GOALS, NAMES, STOPPING, ends, examples, studies

from distrain_nb.findings import errors
from distrain_nb.layout import PLACES
from distrain_nb.tuning.choosing import combinations, grid
from distrain_nb.tuning.options import study
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import (
    ALGORITHMS,
    SCALES,
    Categorical,
    Condition,
    Discrete,
    Double,
    Goal,
    Integer,
    Parameter,
    Search,
    StudyEnd,
    StudySpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.findings import Finding

# A few names only, so that conditions, goals and first trials often name what is there.
FEW = st.sampled_from(["lr", "width", "a b", ""])
VALUES = st.sampled_from([0, 1, 16, 0.5, -1, "sgd", "16"])
BOUNDS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 16.0, float("inf")])
WHOLE = st.integers(-2, 40)
ANY_DOMAIN = st.one_of(
    DOMAINS,
    st.builds(Double, BOUNDS, BOUNDS, st.none() | BOUNDS),
    st.builds(Integer, WHOLE, WHOLE, st.none() | WHOLE),
    st.builds(Discrete, st.lists(st.sampled_from([0.0, 1.0, 16.0]), max_size=4).map(tuple)),
    st.builds(Discrete, st.just(tuple(map(float, range(1001))))),
    st.builds(
        Categorical,
        st.lists(st.sampled_from(["sgd", "16", "adam"]), max_size=4).map(tuple),
        st.none() | st.just("sgd"),
    ),
)
ANY = st.builds(
    StudySpec,
    st.lists(
        st.builds(
            Parameter, FEW, ANY_DOMAIN, st.sampled_from(SCALES),
            st.none() | st.builds(Condition, FEW, st.lists(VALUES, max_size=3).map(tuple)),
        ),
        max_size=4,
    ).map(tuple),
    st.lists(st.builds(Goal, FEW, st.just("min")) | GOALS, max_size=3).map(tuple),
    st.builds(Search, st.none() | st.sampled_from(ALGORITHMS), st.none() | WHOLE),
    st.none() | STOPPING,
    WHOLE, WHOLE, st.none() | WHOLE,
    st.lists(st.dictionaries(FEW, VALUES, min_size=1, max_size=2), max_size=2).map(tuple),
    st.sampled_from([None, "low"]), st.sampled_from([None, "best"]),
    ends() | st.just(StudyEnd(max_duration=60.0, max_time="2026-11-22T18:00:00Z")),
)  # fmt: skip


def lines(findings: tuple[Finding, ...]) -> Counter[str]:
    return Counter(map(str, findings))


@examples
@given(ANY, st.sampled_from(PLACES))
def test_every_repair_puts_right_what_it_is_offered_for(spec: StudySpec, place: str) -> None:
    found = check(spec, place)
    before = lines(found)
    for finding in found:
        for fix in finding.fixes:
            after = lines(check(fix.apply(spec), place))
            assert after[str(finding)] < before[str(finding)], (finding, fix.label)


@examples
@given(ANY, st.sampled_from(PLACES))
def test_repairs_come_to_an_end(spec: StudySpec, place: str) -> None:
    """Whoever takes the first repair again and again has nothing left but what he has to write."""
    for _ in range(60):
        fixes = [fix for finding in check(spec, place) for fix in finding.fixes[:1]]
        if not fixes:
            break
        spec = fixes[0].apply(spec)
    else:
        pytest.fail(f"repairs of {spec} have no end")


def test_a_grid_that_is_too_large_for_sagemaker_is_searched_at_random() -> None:
    """Fewer trials are no grid, and the whole grid is too many: each repair undid the other."""
    values = tuple(map(float, range(30)))
    parameters = tuple(Parameter(name, Discrete(values)) for name in ("a", "b"))
    spec = StudySpec(parameters, (Goal("loss", "min"),), Search("grid"), trials=900)
    for trials in (900, 20):
        fixes = {fix for f in check(replace(spec, trials=trials), "sagemaker") for fix in f.fixes}
        assert {fix.label for fix in fixes} == {"Search at random"}


@examples
@given(studies())
def test_a_sound_study_has_nothing_wrong_with_its_parameters(spec: StudySpec) -> None:
    codes = {finding.code for finding in errors(check(spec, "vertex"))}
    assert not {code for code in codes if code.startswith("tune")}


def sound(**more: Any) -> dict[str, Any]:
    given = {"tune": "lr=1e-5..0.1:log", "goal": "min:loss", "trials": "20", "parallel": "2"}
    return {**given, **more}


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("local", "study-empty", sound(tune=[])),
    ("local", "study-goal", sound(goal=[])),
    ("local", "tune-range", sound(tune="lr=2..1")),
    ("local", "tune-values", sound(tune="width=16|16|32")),
    ("local", "tune-truth", sound(tune="bias=True|False")),
    ("local", "tune-scale", sound(tune="lr=0..1:log")),
    ("local", "tune-scale", sound(tune="opt=sgd|adam:log")),
    ("local", "tune-default", sound(tune="lr=0..1.0,default=2")),
    ("local", "tune-condition", sound(tune=["opt=sgd|adam", "m[opt=rms]=0..1.0"])),
    ("local", "tune-condition", sound(tune=["opt=sgd|adam", "m[op=sgd]=0..1.0"])),
    ("local", "tune-condition", sound(tune=["lr=0..1.0", "m[lr=1]=0..1.0"])),
    ("local", "tune-circle", sound(tune=["a[b=1]=1|2", "b[a=1]=1|2"])),
    ("local", "tune-twice", sound(tune=["lr=0..1.0", "lr=0..2.0"])),
    ("local", "goal-twice", sound(goal=["min:loss", "max:loss"])),
    ("local", "goal-safety", sound(goal="min:loss,threshold=2")),
    ("local", "goal-fraction", sound(goal=["min:loss", "max:acc,threshold=2,fraction=2"])),
    ("local", "trials", sound(trials="0")),
    ("local", "parallel", sound(parallel="0")),
    ("local", "parallel", sound(parallel="30")),
    ("local", "search-grid", sound(search="grid")),
    ("local", "trials-grid", sound(search="grid", tune=["a=1..3", "b=x|y"])),
    ("local", "stop-goals", sound(stop="median", goal=["min:loss", "max:acc"])),
    ("local", "stop-steps", sound(stop="convex,min-steps=5,max-steps=2")),
    ("local", "stop-learning-rate", sound(stop="convex,learning-rate=rate")),
    ("local", "stop-place", sound(stop="hyperband")),
    ("local", "left-out", sound(noise="low")),
    ("local", "initial", sound(initial="rate=1")),
    ("local", "initial", sound(initial="lr=1")),
    ("local", "initial-count", sound(trials="1", parallel="1", initial=["lr=0.1", "lr=0.01"])),
    ("local", "end-time", sound(end='max-duration=2h,max-time="2026-11-22T18:00:00Z"')),
    ("local", "end-place", sound(end="max-trials=3")),
    ("local", "goal-place", sound(goal=["min:loss", "max:acc,threshold=2"])),
    ("vertex", "search-place", sound(search="tpe")),
    ("vertex", "initial-place", sound(initial="lr=0.01")),
    ("vertex", "left-out", sound(search="random,seed=3")),
    ("sagemaker", "goal-count", sound(goal=["min:loss", "max:acc"])),
    ("sagemaker", "tune-condition-place", sound(tune=["opt=sgd|adam", "m[opt=sgd]=0..1.0"])),
    ("sagemaker", "tune-words", sound(tune="width=16|32|64")),
    ("sagemaker", "tune-scale", sound(tune="width=16..64:reverse-log")),
    ("sagemaker", "stop-place", sound(stop="decay-curve")),
    ("sagemaker", "search-hyperband", sound(stop="hyperband", search="random")),
    ("sagemaker", "search-grid", sound(tune="layers=1..4", search="grid")),
    ("sagemaker", "trials-grid", sound(tune=["a=x|y", "b=1|2|3"], search="grid", trials="5")),
    ("ai-platform", "stop-place", sound(stop="decay-curve")),
]


def _cases() -> Iterator[Any]:
    for place, code, options in CASES:
        yield pytest.param(place, code, options, id=f"{place}-{code}")


@pytest.mark.parametrize(("place", "code", "options"), list(_cases()))
def test_each_rule_sees_its_case(place: str, code: str, options: dict[str, Any]) -> None:
    assert code in {finding.code for finding in check(study(options), place)}


def test_a_study_that_is_sound_everywhere() -> None:
    spec = study(sound(tune=["lr=1e-5..0.1:log", "opt=sgd|adam"], stop="median"))
    for place in PLACES:
        assert check(spec, place) == ()


def test_two_of_one_name_may_be_there_under_conditions_apart() -> None:
    varied = ["opt=sgd|adam", "lr[opt=sgd]=0.1..1.0", "lr[opt=adam]=1e-4..1e-2"]
    assert check(study(sound(tune=varied)), "vertex") == ()


def test_a_grid_counts_its_combinations() -> None:
    assert combinations(study(sound(tune=["a=1..3", "b=x|y", "c=1|2|3|4"]))) == 24
    assert combinations(study(sound())) is None


@pytest.mark.parametrize(
    ("varied", "count"),
    [
        (["opt=sgd|adam|none", "m[opt=sgd]=0.5|0.9"], 4),
        (["opt=sgd|adam|none", "m[opt=sgd]=0.5|0.9", "b[opt=adam]=1|2|3"], 6),
        (["m[opt=sgd]=0.5|0.9", "w=1..4", "opt=sgd|adam"], 12),
        (["n=1..3", "a[n=2|3]=x|y", "b[a=y]=1|2"], 7),
        (["n=5", "a[n=5]=1|2", "a[n=7]=1|2|3"], 2),
    ],
)
def test_a_grid_with_conditions_counts_what_it_has(varied: list[str], count: int) -> None:
    spec = study(sound(tune=varied))
    tried = list(grid(spec))
    assert combinations(spec) == len(tried) == count
    assert len({tuple(sorted(each.items())) for each in tried}) == count


def test_nobody_goes_through_a_huge_grid() -> None:
    spec = study(sound(tune=["n=0..1000000000", "m=0..1000000000", "k[n=7]=1|2"]))
    assert combinations(spec) == (10**9 + 2) * (10**9 + 1)
    assert next(grid(spec)) == {"n": 0, "m": 0}


@examples
@given(NAMES, st.floats(1e-6, 1.0), st.floats(2.0, 1e6), st.sampled_from(SCALES))
def test_a_range_made_a_list_stays_in_its_range(
    name: str, low: float, high: float, scale: Any
) -> None:
    spec = StudySpec(
        (Parameter(name, Double(low, high), scale),), (Goal("loss", "min"),), Search("grid")
    )
    (finding,) = (each for each in check(spec, "local") if each.code == "search-grid")
    domain = finding.fixes[0].apply(spec).parameters[0].domain
    assert isinstance(domain, Discrete)
    assert 2 < len(domain.values) <= 5
    assert (domain.values[0], domain.values[-1]) == (low, high)
