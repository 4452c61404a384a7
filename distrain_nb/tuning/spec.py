"""The specification of a study, as Vertex AI's `StudySpec` and the numbers of a
`HyperparameterTuningJob` have it: plain values, without any engine or service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Value: TypeAlias = "float | int | str"
Scale: TypeAlias = Literal["linear", "log", "reverse-log"]
Direction: TypeAlias = Literal["min", "max"]
Algorithm: TypeAlias = Literal["tpe", "gp", "random", "grid"]

SCALES: tuple[Scale, ...] = ("linear", "log", "reverse-log")
ALGORITHMS: tuple[Algorithm, ...] = ("tpe", "gp", "random", "grid")

# Within which two numbers are the same value of a `Discrete`, as Vertex AI documents.
EPSILON = 1e-10


@dataclass(frozen=True)
class Double:
    """Any number from `low` to `high`, both included; `default` is a good one to start with."""

    low: float
    high: float
    default: float | None = None


@dataclass(frozen=True)
class Integer:
    """Any whole number from `low` to `high`, both included."""

    low: int
    high: int
    default: int | None = None


@dataclass(frozen=True)
class Discrete:
    """One of some numbers, which it keeps in their order, as Vertex AI wants them."""

    values: tuple[float, ...]
    default: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(self.values)))


@dataclass(frozen=True)
class Categorical:
    """One of some words, which have no order."""

    values: tuple[str, ...]
    default: str | None = None


Domain: TypeAlias = "Double | Integer | Discrete | Categorical"


@dataclass(frozen=True)
class Condition:
    """A condition: the parameter called `parent` has one of `values`; that one is no `Double`."""

    parent: str
    values: tuple[Value, ...]

    def holds(self, chosen: Mapping[str, Value]) -> bool:
        """Return whether the parent is among the chosen values, with one of these."""
        return self.parent in chosen and any(
            same_value(chosen[self.parent], allowed) for allowed in self.values
        )


@dataclass(frozen=True)
class Parameter:
    """A parameter that trials have with different values: all trials, or those of a condition.

    Several may have one name, under conditions of which never two hold.
    """

    name: str
    domain: Domain
    scale: Scale = "linear"
    condition: Condition | None = None

    def native(self, value: Value) -> Value:
        """Return a value of this parameter, from text or JSON, as the cell gets it.

        The numbers of a `Discrete` are whole ones where all are; words are texts.
        Raises ValueError for a text that is no number where one is expected.
        """
        domain = self.domain
        if isinstance(domain, Categorical):
            return str(value)
        number = float(value)
        is_whole = isinstance(domain, Integer) or (
            isinstance(domain, Discrete) and all(map(float.is_integer, map(float, domain.values)))
        )
        return int(number) if is_whole and number.is_integer() else number


@dataclass(frozen=True)
class Goal:
    """A metric to minimize or maximize.

    With a `safety_threshold` it is one not to be crossed, beside another to optimize;
    `safe_fraction`, from 0 to 1, is the wanted part of trials that don't cross it.
    """

    metric: str
    direction: Direction
    safety_threshold: float | None = None
    safe_fraction: float | None = None


@dataclass(frozen=True)
class Search:
    """The algorithm that finds the values of the next trial; None is the place's own choice:
    Bayesian everywhere."""

    algorithm: Algorithm | None = None
    seed: int | None = None


@dataclass(frozen=True)
class MedianStopping:
    """Stop a trial whose best value is worse than the median of the others' running averages.

    `use_elapsed_duration`: up to the same time since the trial's start, not to the same step.
    """

    use_elapsed_duration: bool = False


@dataclass(frozen=True)
class DecayCurveStopping:
    """Stop a trial whose curve, continued by a Gaussian process, hardly reaches the best value."""

    use_elapsed_duration: bool = False


@dataclass(frozen=True)
class ConvexStopping:
    """Stop a trial whose curve, continued by its slope, stays below the best value.

    Steps are seconds where `use_elapsed_duration`. None leaves a choice to the service.
    """

    max_steps: int | None = None
    min_steps: int | None = None
    min_measurements: int | None = None
    learning_rate: str | None = None
    use_elapsed_duration: bool = False
    update_all_stopped: bool | None = None


@dataclass(frozen=True)
class HyperbandStopping:
    """SageMaker's Hyperband: many trials of few steps, and more steps for the best of them."""

    min_steps: int | None = None
    max_steps: int | None = None


Stopping: TypeAlias = "MedianStopping | DecayCurveStopping | ConvexStopping | HyperbandStopping"


@dataclass(frozen=True)
class StudyEnd:
    """The limits that end a study before it has all its trials. Durations are seconds, `…_time` are
    times in RFC 3339, such as `2026-11-22T18:00:00Z`; `asap` interrupts the trials that still run.
    """

    asap: bool | None = None
    min_duration: float | None = None
    min_time: str | None = None
    max_duration: float | None = None
    max_time: str | None = None
    min_trials: int | None = None
    max_trials: int | None = None
    max_trials_no_progress: int | None = None
    max_duration_no_progress: float | None = None


@dataclass(frozen=True)
class StudySpec:
    """A study: what varies, what is wanted, and how many trials there are.

    `parallel`: trials that run at once. `max_failed`: failed trials after which the study has
    failed; 0 or None leaves that to the place. `initial`: values of the first trials by parameter,
    where a missing one is found as in any other trial. `noise`, `measurement`: None is the
    service's choice; `measurement` says which of a trial's values counts.
    """

    parameters: tuple[Parameter, ...]
    goals: tuple[Goal, ...]
    search: Search = Search()
    stopping: Stopping | None = None
    trials: int = 1
    parallel: int = 1
    max_failed: int | None = None
    initial: tuple[Mapping[str, Value], ...] = field(default=(), hash=False)
    noise: Literal["low", "high"] | None = None
    measurement: Literal["last", "best"] | None = None
    end: StudyEnd = StudyEnd()

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", tuple(dict(trial) for trial in self.initial))

    def active(self, chosen: Mapping[str, Value]) -> Iterator[Parameter]:
        """Return the parameters that a trial has, when parents have the values that are chosen."""
        return (p for p in self.parameters if p.condition is None or p.condition.holds(chosen))

    def edited(self, **changes: object) -> StudySpec:
        """Return the spec with other fields. Raises TypeError for a field that there is none of."""
        return replace(self, **changes)  # type: ignore[arg-type]


def same_value(first: Value, second: Value) -> bool:
    """Return whether two are the same value of a parameter: numbers that are hardly apart, or
    words."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return abs(first - second) <= EPSILON
