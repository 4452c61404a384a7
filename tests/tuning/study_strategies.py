"""Studies by chance: all that a `StudySpec` can say, and no more than is sound."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

from distrain_nb.tuning.spec import (
    ALGORITHMS,
    SCALES,
    Categorical,
    Condition,
    ConvexStopping,
    DecayCurveStopping,
    Discrete,
    Double,
    Goal,
    HyperbandStopping,
    Integer,
    MedianStopping,
    Parameter,
    Search,
    StudyEnd,
    StudySpec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

examples = settings(
    derandomize=True,
    max_examples=50,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)

# Words with every sign that the grammar has, and some that look like what they aren't.
WORDS = st.one_of(
    st.sampled_from(["16", "1e3", "..", "a..b", "True", "log", "1..4", '"', "\\", "a|b", "ä b"]),
    st.text(string.ascii_letters + string.digits + ' "\\|:,=[]._-/+#', min_size=1, max_size=8),
)
NAMES = st.from_regex(r"[A-Za-z_]([\w.\- ]{0,8}\w)?", fullmatch=True)
METRICS = st.text(string.ascii_letters + '/_:,."[= ', min_size=1, max_size=12).filter(str.strip)
NUMBERS = st.floats(-1e12, 1e12)
POSITIVE = st.floats(1e-9, 1e9)
COUNTS = st.integers(0, 10**6)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def doubles(draw: Callable[..., Any]) -> Double:
    low, high = sorted([draw(POSITIVE), draw(POSITIVE)])
    return Double(low, high, draw(st.sampled_from([None, low, high])))


@st.composite
def integers(draw: Callable[..., Any]) -> Integer:
    low, high = sorted([draw(st.integers(1, 10**9)), draw(st.integers(1, 10**9))])
    return Integer(low, high, draw(st.sampled_from([None, low, high])))


@st.composite
def discretes(draw: Callable[..., Any]) -> Discrete:
    numbers = st.one_of(st.integers(1, 10**6).map(float), st.floats(0.001, 1e6))
    values = draw(st.lists(numbers, min_size=1, max_size=5, unique_by=lambda it: round(it, 6)))
    return Discrete(tuple(values), draw(maybe(st.sampled_from(values))))


@st.composite
def categoricals(draw: Callable[..., Any]) -> Categorical:
    values = draw(st.lists(WORDS, min_size=1, max_size=5, unique=True))
    # A list of nothing but numbers is one of numbers, unless they are quoted.
    return Categorical(tuple(values), draw(maybe(st.sampled_from(values))))


DOMAINS = st.one_of(doubles(), integers(), discretes(), categoricals())


@st.composite
def parameters(draw: Callable[..., Any], most: int = 4) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=most, unique=True)):
        domain = draw(DOMAINS)
        scale = "linear" if isinstance(domain, Categorical) else draw(st.sampled_from(SCALES))
        parents = [each for each in found if not isinstance(each.domain, Double)]
        condition = None
        if parents and draw(st.booleans()):
            parent = draw(st.sampled_from(parents))
            condition = Condition(parent.name, draw(values_of(parent)))
        found.append(Parameter(name, domain, scale, condition))
    return tuple(found)


def values_of(parent: Parameter) -> st.SearchStrategy[tuple[Any, ...]]:
    domain = parent.domain
    assert not isinstance(domain, Double)
    if isinstance(domain, Integer):
        each: st.SearchStrategy[Any] = st.integers(domain.low, domain.high)
    else:
        each = st.sampled_from(domain.values).map(parent.native)
    return st.lists(each, min_size=1, max_size=3, unique=True).map(tuple)


GOALS = st.builds(Goal, METRICS, st.sampled_from(["min", "max"])) | st.builds(
    Goal, METRICS, st.sampled_from(["min", "max"]), NUMBERS, maybe(st.floats(0, 1))
)
STOPPING = st.one_of(
    st.builds(MedianStopping, st.booleans()),
    st.builds(DecayCurveStopping, st.booleans()),
    st.builds(
        ConvexStopping, maybe(COUNTS), maybe(COUNTS), maybe(COUNTS), maybe(NAMES), st.booleans(),
        maybe(st.booleans()),
    ),
    st.builds(HyperbandStopping, maybe(COUNTS), maybe(COUNTS)),
)  # fmt: skip
SECONDS = maybe(st.integers(0, 10**7).map(float) | st.floats(0, 1e6).map(lambda it: round(it, 6)))
TIMES = maybe(st.just("2026-11-22T18:00:00Z"))
SPANS = st.tuples(SECONDS, st.none()) | st.tuples(st.none(), TIMES)


@st.composite
def ends(draw: Callable[..., Any]) -> StudyEnd:
    return StudyEnd(
        draw(maybe(st.booleans())),
        *draw(SPANS),
        *draw(SPANS),
        draw(maybe(COUNTS)),
        draw(maybe(COUNTS)),
        draw(maybe(COUNTS)),
        draw(SECONDS),
    )


@st.composite
def studies(draw: Callable[..., Any]) -> StudySpec:
    varied = draw(parameters())
    return StudySpec(
        varied,
        tuple(draw(st.lists(GOALS, min_size=1, max_size=2, unique_by=lambda it: it.metric))),
        Search(draw(maybe(st.sampled_from(ALGORITHMS))), draw(maybe(COUNTS))),
        draw(maybe(STOPPING)),
        draw(st.integers(1, 1000)),
        draw(st.integers(1, 100)),
        draw(maybe(COUNTS)),
        tuple(draw(st.lists(trials(varied), max_size=2))),
        draw(maybe(st.sampled_from(["low", "high"]))),
        draw(maybe(st.sampled_from(["last", "best"]))),
        draw(ends()),
    )


@st.composite
def trials(draw: Callable[..., Any], varied: tuple[Parameter, ...]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for parameter in varied:
        if parameter.condition is None or parameter.condition.holds(chosen):
            domain = parameter.domain
            if isinstance(domain, (Double, Integer)):
                chosen[parameter.name] = draw(st.sampled_from([domain.low, domain.high]))
            else:
                chosen[parameter.name] = parameter.native(draw(st.sampled_from(domain.values)))
    return chosen
