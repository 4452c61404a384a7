"""Counts of a rank's sums: those of the reducers, and those made as usual."""

from __future__ import annotations

import threading
from typing import Dict, Tuple

_UNITS = ("B", "kB", "MB", "GB", "TB")
_Amount = Tuple[int, int]  # how many, and their bytes


class SumCount:
    """Counts of all groups: `others` has what the reducers did not do, or why."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.by_reducers: _Amount = (0, 0)
        self.unreduced: Dict[str, _Amount] = {}

    def add(self, size: int, why_not: str = "") -> None:
        """Count one more reduction, of so many bytes."""
        with self._lock:
            if why_not:
                number, count = self.unreduced.get(why_not, (0, 0))
                self.unreduced[why_not] = number + 1, count + size
            else:
                number, count = self.by_reducers
                self.by_reducers = number + 1, count + size

    def words(self, reducers: int) -> str:
        """Describe the counts: `400 all-reduces (1.2 GB) by 2 reducers; 1 reduction (48 B) as
        usual: 1 of int32`."""
        number, count = self.by_reducers
        pool = f"{reducers} reducer" + "s" * (reducers != 1)
        line = f"{number:,} all-reduce{'s' * (number != 1)} ({amount(count)}) by {pool}"
        if not self.unreduced:
            return line
        amounts = self.unreduced.values()
        number, count = sum(n for n, _ in amounts), sum(b for _, b in amounts)
        counts = ", ".join(f"{n:,} {why}" for why, (n, _) in sorted(self.unreduced.items()))
        reductions = f"{number:,} reduction" + "s" * (number != 1)
        return f"{line}; {reductions} ({amount(count)}) as usual: {counts}"


def amount(count: float) -> str:
    """Return bytes with three digits and a unit: `1.23 GB`."""
    for unit in _UNITS[:-1]:
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} {_UNITS[-1]}"
