"""Runs side by side as rows of a table: state and cause, then by what they differ."""

from __future__ import annotations

import math
import os.path
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.metrics import finite
from distrain_nb.run.pages.best_metric import kind_of
from distrain_nb.run.pages.compare import CAUSE, DURATION, STATE, Comparison
from distrain_nb.run.summary import short_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from distrain_nb.types import Json

DATA = "--data "
DIGITS = 6
LONG = 20  # characters that are left out where all paths begin with them


@dataclass(frozen=True)
class ComparedRow:
    """A fact about each of several runs: texts, and numbers of those texts that have one.

    `best` are the indices of the best values, if it is known which are good.
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
    """Return the rows: state, cause, then those that differ, then all others."""
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


def differing(rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the names whose values differ between rows, in order of first appearance."""
    return tuple(name for name in _names(rows) if len({row.get(name) for row in rows}) > 1)


def _shortened(name: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return shorter texts that still differ as much.

    Numbers lose digits. Paths of data lose the folder that all of them share.
    """
    if any(len(text) > DIGITS and _is_fraction(text) for text in texts):
        for digits in (DIGITS, 9, 12, 15):
            short = tuple(f"{float(t):.{digits}g}" if _is_fraction(t) else t for t in texts)
            if len(set(short)) == len(set(texts)):
                return short
    distinct = set(filter(None, texts))
    shared = os.path.commonprefix(list(distinct)).rpartition("/")[0]  # noqa: RUF071 - cut at slashes
    if not name.startswith(DATA) or len(distinct) < 2 or len(shared) < LONG:
        return texts
    return tuple(f"…{text[len(shared) :]}" if text else "" for text in texts)


def _is_fraction(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and not text.lstrip("+-").isdigit()
    except ValueError:
        return False


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
    texts = tuple("" if number is None else short_number(number) for number in numbers)
    return ComparedRow(tag, texts, tuple(numbers), _best(numbers, kind_of(tag)))


def _best(numbers: Sequence[float | None], kind: str) -> tuple[int, ...]:
    """Return the indices of the best numbers; none if all are equal, or if there is only one."""
    finite = [number for number in numbers if number is not None and number == number]
    if kind == "last" or len(set(finite)) < 2:
        return ()
    best = min(finite) if kind == "min" else max(finite)
    return tuple(index for index, number in enumerate(numbers) if number == best)
