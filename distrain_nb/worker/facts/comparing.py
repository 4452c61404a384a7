"""All comparisons of the facts of a run: what is not as it should be, the causes first."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Tuple

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.copies import loss_deviations, weight_deviations
from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.dry import memory_deviations
from distrain_nb.worker.facts.order import order_deviations, step_deviations
from distrain_nb.worker.facts.proof import proof_deviations
from distrain_nb.worker.facts.reader import FactReader
from distrain_nb.worker.facts.record import Facts
from distrain_nb.worker.facts.shares import data_deviations

IGNORE_VARIABLE, STRICT_VARIABLE = "DISTRAIN_IGNORE", "DISTRAIN_STRICT"
PREFIX = "distrain: warning: "
SHARE_OF_TIME = 0.1

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


class FactComparison:
    """The facts of a run's ranks, or of these `ranks`, compared again and again while they grow."""

    def __init__(
        self, events_folder: Path, ignored: str = "", ranks: Optional[Iterable[int]] = None
    ) -> None:
        self._reader = FactReader(events_folder, ranks)
        self._ignored = frozenset(filter(None, ignored.split(",")))
        self._sizes: Dict[str, int] = {}  # of what was compared last
        self._deviations: Tuple[Deviation, ...] = ()
        self._due = 0.0
        # A supervisor compares for the last time while its thread may be about to find something.
        self._lock = threading.Lock()

    def compare(self) -> Tuple[Deviation, ...]:
        """Return what deviates, as far as it is known. Raises LookupError, TypeError or ValueError
        for files of a version that has other fields."""
        with self._lock:
            sizes = self._reader.sizes()
            if sizes != self._sizes:
                self._deviations = tuple(compare(self._reader.read(), self._ignored))
                self._sizes = sizes
            return self._deviations

    def look(self) -> Tuple[Deviation, ...]:
        """Return what deviated lately. Compare for a tenth of the time at most: the facts of 1,024
        ranks take as long as many looks at their logs."""
        began = time.monotonic()
        if began >= self._due:
            self.compare()
            ended = time.monotonic()
            self._due = ended + (ended - began) / SHARE_OF_TIME
        return self._deviations
