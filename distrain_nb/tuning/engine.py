"""The search engine: Optuna, asked and told, made from a spec. The extra `[tune]` installs it.

The engine keeps nothing that its owner doesn't have: it is made again from the trials that there
are. What it writes into a file is for others to look at, such as optuna-dashboard.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from distrain_nb.errors import DistrainError
from distrain_nb.tuning.choosing import choose, grid
from distrain_nb.tuning.spec import (
    Categorical,
    Discrete,
    Double,
    Integer,
    Parameter,
    StudySpec,
    Value,
)

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler


INSTALL = '%pip install "distrain-nb[tune]"'
MOST_POINTS = 100  # of a curve, that are written down for others

Ending: TypeAlias = Literal["running", "succeeded", "stopped", "failed", "cancelled"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trial: `values` are those of the goals, in their order, where it has all;
    `curve` are (step, value) of the first goal."""

    ending: Ending
    values: tuple[float, ...] = ()
    curve: tuple[tuple[int, float], ...] = ()


class SearchEngine:
    """Suggests the values of one trial after another. Trials are numbered from 1."""

    def __init__(
        self,
        spec: StudySpec,
        trials: Iterable[tuple[Mapping[str, Value], Outcome]] = (),
        storage: Path | None = None,
        name: str = "study",
    ) -> None:
        """Continue a study from its `trials`, in order of their numbers, with what they have tried.

        `storage` is a file that is written anew. Raises OptionError for a spec that can't be
        searched so, DistrainError where a package is missing.
        """
        require("optuna", "a study on this machine")
        self._spec = spec
        self._grid = grid(spec) if spec.search.algorithm == "grid" else None
        self._of_grid: list[Mapping[str, Value]] = []
        past = list(trials)
        self.study = _study(spec, len(past), storage, name)
        for parameters, outcome in past:
            self._add(parameters, outcome)

    def ask(self) -> dict[str, Value] | None:
        """Return values by parameter for the next trial; None where a grid has no more."""
        number = len(self.study.get_trials(deepcopy=False))
        fixed = self._fixed(number)
        if fixed is None:
            return None
        self.study.enqueue_trial(_internal(self._spec, fixed), skip_if_exists=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = self.study.ask()
            return choose(self._spec, lambda parameter: _suggested(trial, self._spec, parameter))

    def tell(self, number: int, outcome: Outcome) -> None:
        """Record the outcome of a trial that has ended."""
        frozen = self.study.get_trials(deepcopy=False)[number - 1]
        if outcome.ending == "succeeded":
            self._report(frozen, outcome)
            self.study.tell(number - 1, list(outcome.values))
        else:
            if outcome.ending == "stopped":
                self._report(frozen, outcome)
            self.study.tell(number - 1, state=_state(outcome, len(self._spec.goals)))

    def _fixed(self, number: int) -> Mapping[str, Value] | None:
        """Return the values that are no question for the trial that comes after that many."""
        if self._grid is not None:
            self._of_grid += islice(self._grid, number + 1 - len(self._of_grid))
            return self._of_grid[number] if number < len(self._of_grid) else None
        first = self._spec.initial or _defaults(self._spec)
        return first[number] if number < len(first) else {}

    def _report(self, frozen: optuna.trial.FrozenTrial, outcome: Outcome) -> None:
        if len(self._spec.goals) > 1 or not outcome.curve:
            return
        import optuna

        trial = optuna.trial.Trial(self.study, frozen._trial_id)
        for step, value in thinned(outcome.curve):
            trial.report(value, step)

    def _add(self, parameters: Mapping[str, Value], outcome: Outcome) -> None:
        import optuna

        active = {p.name: p for p in self._spec.active(parameters)}
        params, distributions = {}, {}
        for name, value in parameters.items():
            parameter = active[name]
            params[_key(self._spec, parameter)] = _inward(parameter, value)
            distributions[_key(self._spec, parameter)] = _distribution(parameter)
        single = len(self._spec.goals) == 1 and outcome.ending in ("succeeded", "stopped")
        self.study.add_trial(
            optuna.trial.create_trial(
                state=_state(outcome, len(self._spec.goals)),
                values=list(outcome.values) if outcome.ending == "succeeded" else None,
                params=params,
                distributions=distributions,
                intermediate_values=dict(thinned(outcome.curve)) if single else {},
            )
        )


def require(package: str, feature: str) -> None:
    """Raise DistrainError where a package is missing that something needs."""
    if find_spec(package) is None:
        raise DistrainError(f"{feature} needs the package {package}, which is missing: {INSTALL}")


def thinned(curve: tuple[tuple[int, float], ...]) -> Iterator[tuple[int, float]]:
    """Yield points of a curve, the last among them, evenly spread over it."""
    last = len(curve) - 1
    count = min(len(curve), MOST_POINTS)
    for number in range(count):
        yield curve[last - (count - 1 - number) * last // max(1, count - 1)]


def _defaults(spec: StudySpec) -> tuple[Mapping[str, Value], ...]:
    """Return a trial with the values that are said to be good ones to start with."""
    defaults = {p.name: p.domain.default for p in spec.parameters if p.domain.default is not None}
    return (defaults,) if defaults else ()


def _study(spec: StudySpec, count: int, storage: Path | None, name: str) -> optuna.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of options that are experimental there
        return optuna.create_study(
            study_name=name,
            storage=_new_storage(storage) if storage else None,
            sampler=_sampler(spec, count),
            directions=["minimize" if g.direction == "min" else "maximize" for g in spec.goals],
        )


def _new_storage(path: Path) -> optuna.storages.BaseStorage:
    """Open the storage anew. Nobody else writes there: a lock was left by a process that was
    killed."""
    for old in (path, path.with_name(f"{path.name}.lock")):
        with suppress(FileNotFoundError):
            old.unlink()
    return open_storage(path)


def open_storage(path: Path) -> optuna.storages.BaseStorage:
    """Return the file of a study as Optuna's storage."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(path)))


def _sampler(spec: StudySpec, count: int) -> BaseSampler:
    """Make the sampler. Made again after some trials, it draws other numbers than for these."""
    from optuna import samplers

    seed = None if spec.search.seed is None else spec.search.seed + count
    if spec.search.algorithm in ("random", "grid"):
        return samplers.RandomSampler(seed)
    if spec.search.algorithm == "gp":
        for package in ("torch", "scipy"):
            require(package, "search gp on this machine")
        return samplers.GPSampler(seed=seed)
    return samplers.TPESampler(seed=seed, constant_liar=spec.parallel > 1)


def _state(outcome: Outcome, goals: int) -> optuna.trial.TrialState:
    """Return a trial's state for Optuna, to which a stopped trial of several goals says nothing."""
    from optuna.trial import TrialState

    states = {
        "running": TrialState.RUNNING,
        "succeeded": TrialState.COMPLETE,
        "stopped": TrialState.PRUNED if goals == 1 else TrialState.FAIL,
        "failed": TrialState.FAIL,
        "cancelled": TrialState.FAIL,
    }
    return states[outcome.ending]


def _suggested(trial: optuna.trial.Trial, spec: StudySpec, parameter: Parameter) -> Value:
    key, distribution = _key(spec, parameter), _distribution(parameter)
    value = _outward(parameter, trial._suggest(key, distribution))
    if parameter.scale == "reverse-log":
        trial.set_user_attr(parameter.name, value)
    return value


def _internal(spec: StudySpec, fixed: Mapping[str, Value]) -> dict[str, Value]:
    """Rename values to the names that Optuna has for the parameters."""
    return {_key(spec, p): _inward(p, fixed[p.name]) for p in spec.active(fixed) if p.name in fixed}


def _key(spec: StudySpec, parameter: Parameter) -> str:
    """Return the name of a parameter in Optuna; a reversed one is named by its formula."""
    name = parameter.name
    if parameter.scale == "reverse-log":
        name = f"{_reflection(parameter):g} - {name}"
    if sum(alike.name == parameter.name for alike in spec.parameters) > 1 and parameter.condition:
        values = "|".join(map(str, parameter.condition.values))
        name += f" [{parameter.condition.parent}={values}]"
    return name


def by_name(spec: StudySpec, by_key: Mapping[str, float]) -> dict[str, float]:
    """Return numbers by the names under which Optuna knows the parameters, by their own: those of
    one name are added up."""
    names = {_key(spec, parameter): parameter.name for parameter in spec.parameters}
    added: dict[str, float] = {}
    for key, value in by_key.items():
        added[names[key]] = added.get(names[key], 0.0) + value
    return added


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna import distributions

    domain, log = parameter.domain, parameter.scale != "linear"
    if isinstance(domain, Double):
        return distributions.FloatDistribution(domain.low, domain.high, log=log)
    if isinstance(domain, Integer):
        return distributions.IntDistribution(domain.low, domain.high, log=log)
    return distributions.CategoricalDistribution([parameter.native(v) for v in domain.values])


def _inward(parameter: Parameter, value: Value) -> Value:
    value = parameter.native(value)
    domain = parameter.domain
    if isinstance(domain, (Discrete, Categorical)):
        return next((v for v in map(parameter.native, domain.values) if v == value), value)
    return _reflected(parameter, value)


def _outward(parameter: Parameter, value: Value) -> Value:
    if isinstance(parameter.domain, (Discrete, Categorical)):
        return value
    return parameter.native(_reflected(parameter, value))


def _reflected(parameter: Parameter, value: Value) -> Value:
    """Reflect a value for the scale reverse-log.

    The distance to the sum of both ends is searched on a logarithmic scale. So values close to the
    upper end are told apart best, as Vertex AI documents it.
    """
    if parameter.scale != "reverse-log" or isinstance(value, str):
        return value
    low, high = parameter.domain.low, parameter.domain.high  # type: ignore[union-attr]
    return min(max(low + high - value, low), high)


def _reflection(parameter: Parameter) -> float:
    domain = parameter.domain
    return domain.low + domain.high if isinstance(domain, (Double, Integer)) else 0.0
