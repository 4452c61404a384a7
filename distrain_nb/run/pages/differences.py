"""Runs side by side as rows of a table: state and cause, then by what they differ."""

from __future__ import annotations

import os.path
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.metrics import finite
from distrain_nb.run.pages.best_metric import kind_of
from distrain_nb.run.summary import brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from distrain_nb.run.pages.compare import Comparison
    from distrain_nb.types import Json

CAUSE, DURATION, STATE = "cause", "duration", "state"
DATA = "--data "
LONG = 20  # characters that are left out where all paths begin with them


@dataclass(frozen=True)
class ComparedRow:
    """One thing that runs have: a text for each run, and `numbers` where texts stand for some.

    `best` are the places of the best values, where one can say which are good.
    """

    name: str
    texts: tuple[str, ...]
    numbers: tuple[float | None, ...] = ()
    best: tuple[int, ...] = ()

    @property
    def differs(self) -> bool:
        return len(set(self.texts)) > 1  # "" is as good as nothing

    def as_json(self) -> dict[str, Json]:
        """Return JSON values; a number that is not finite is None."""
        return finite.without_nan({**asdict(self), "differs": self.differs})


def rows(compared: Comparison) -> list[ComparedRow]:
    """Return the rows: state, cause, then what differs, then what doesn't."""
    names = _names(compared.outcome)
    outcome = {name: _of_outcome(compared, name) for name in names}
    first = [outcome.pop(STATE)]
    if any((cause := outcome.pop(CAUSE)).texts):
        first.append(cause)
    settings = [
        ComparedRow(name, _shortened(name, tuple(row.get(name, "") for row in compared.settings)))
        for name in _names(compared.settings)
    ]
    metrics = [_of_metric(compared, tag) for tag in _names(compared.metrics)]
    return first + sorted([*settings, *outcome.values(), *metrics], key=lambda row: not row.differs)


def _shortened(name: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths of data that differ, without the folders that all of them are below."""
    distinct = set(filter(None, texts))
    shared = os.path.commonprefix(list(distinct)).rpartition("/")[0]  # noqa: RUF071 - cut at slashes
    if not name.startswith(DATA) or len(distinct) < 2 or len(shared) < LONG:
        return texts
    return tuple(f"…{text[len(shared) :]}" if text else "" for text in texts)


def differing(rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the names whose values are not the same in all, in order of first appearance."""
    return tuple(name for name in _names(rows) if len({row.get(name) for row in rows}) > 1)


def _names(rows: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row))


def _of_outcome(compared: Comparison, name: str) -> ComparedRow:
    texts = tuple(row.get(name, "") for row in compared.outcome)
    if name == DURATION:
        now = time.time()
        return ComparedRow(name, texts, tuple(r.summary.elapsed(now) for r in compared.summaries))
    bests = [row.best for row in compared.summaries]
    if not any(best and best.name == name for best in bests):
        return ComparedRow(name, texts)
    numbers = [best.value if best and best.name == name else None for best in bests]
    kind = next(best.kind for best in bests if best and best.name == name)
    return ComparedRow(name, texts, tuple(numbers), _best(numbers, kind))


def _of_metric(compared: Comparison, tag: str) -> ComparedRow:
    numbers = [row.get(tag) for row in compared.metrics]
    texts = tuple("" if number is None else brief(number) for number in numbers)
    return ComparedRow(tag, texts, tuple(numbers), _best(numbers, kind_of(tag)))


def _best(numbers: Sequence[float | None], kind: str) -> tuple[int, ...]:
    """Return the places of the lowest or highest; none where all are the same, or there is but
    one."""
    finite = [number for number in numbers if number is not None and number == number]
    if kind == "last" or len(set(finite)) < 2:
        return ()
    best = min(finite) if kind == "min" else max(finite)
    return tuple(place for place, number in enumerate(numbers) if number == best)
