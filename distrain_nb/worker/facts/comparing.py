"""All comparisons of the facts of a run: what is not as it should be, the causes first."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import FrozenSet, Iterable, List, Optional, Tuple

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.copies import loss_deviations, weight_deviations
from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.dry import memory_deviations
from distrain_nb.worker.facts.order import order_deviations, step_deviations
from distrain_nb.worker.facts.proof import proof_deviations
from distrain_nb.worker.facts.record import Facts, read_facts, sizes
from distrain_nb.worker.facts.shares import data_deviations

IGNORE_VARIABLE, STRICT_VARIABLE = "DISTRAIN_IGNORE", "DISTRAIN_STRICT"
PREFIX = "distrain: warning: "

# What follows from another deviation, and says less.
_CONSEQUENCES = {
    deviations.DIFFER: frozenset(
        [
            *(deviations.MIXED, deviations.RATE, deviations.UNEVEN, deviations.LOSS),
            *(deviations.BYPASSED, deviations.NO_SYNC, deviations.START, deviations.SKIPPED),
            *(deviations.LOOSE, deviations.GONE),
        ]
    ),
    deviations.SKIPPED: frozenset([deviations.MIXED]),
    deviations.UNEVEN: frozenset([deviations.MIXED, deviations.GONE, deviations.SKIPPED]),
    deviations.UNWRAPPED: frozenset([deviations.SPLIT]),
}


def compare(facts: Facts, ignored: Iterable[str] = ()) -> List[Deviation]:
    """Return what deviates in a run, each code once; `ignored` codes, or their kinds (`data`), are
    left out."""
    every = [*memory_deviations(facts)]
    if len(facts) > 1:
        every += _between(facts)

    first = {deviation.code: deviation for deviation in reversed(every)}
    codes = set(first)
    hidden = {code for code in codes if codes & _CONSEQUENCES.get(code, frozenset())}
    hidden.update(code for code in codes if is_ignored(code, ignored))
    return [first[code] for code in dict.fromkeys(d.code for d in every) if code not in hidden]


def _between(facts: Facts) -> List[Deviation]:
    return [
        *order_deviations(facts),
        *weight_deviations(facts),
        *loss_deviations(facts),
        *step_deviations(facts),
        *data_deviations(facts),
        *proof_deviations(facts),
    ]


def is_ignored(code: str, ignored: Iterable[str]) -> bool:
    """Return whether a code is among those, or the kind that it begins with."""
    names = {name.strip() for name in ignored}
    return code in names or code.partition(".")[0] in names


def deviations_in(
    events_folder: Path, ignored: str = "", ranks: Optional[Tuple[int, ...]] = None
) -> Tuple[Deviation, ...]:
    """Return what deviates in the run with this folder of event files, as far as it is known:
    between all its ranks, or between these."""
    return _compared(
        events_folder,
        tuple(sizes(events_folder, ranks).items()),
        frozenset(filter(None, ignored.split(","))),
        ranks,
    )


@lru_cache(maxsize=64)
def _compared(
    events_folder: Path,
    files: Tuple[Tuple[str, int], ...],
    ignored: FrozenSet[str],
    ranks: Optional[Tuple[int, ...]],
) -> Tuple[Deviation, ...]:
    """Compare again where a file has grown."""
    return tuple(compare(read_facts(events_folder, ranks), ignored)) if files else ()
