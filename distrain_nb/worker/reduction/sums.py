"""The arithmetic of a reducer, and the memory in which chunks wait for it."""

from __future__ import annotations

import importlib
from typing import Any, Dict, Tuple

from distrain_nb.worker.reduction.protocol import DTYPES, WINDOW, largest_chunk
from distrain_nb.worker.reduction.tensor_bytes import bytes_of

# The place of a chunk is known before its worker may send it.
_PLACES = WINDOW + 1


class Sums:
    """Sums of the chunks of `members`, which are added in that order: `number` have been made.

    Types of 16 bits are added, and divided, in float32 and rounded once.
    """

    def __init__(self, members: int) -> None:
        self._torch = torch = importlib.import_module("torch")
        self._members = members
        self._largest = largest = largest_chunk(members)
        self._parts = torch.empty((members, _PLACES, largest), dtype=torch.uint8)
        self._results = torch.empty((WINDOW, largest), dtype=torch.uint8)
        self._wide = torch.empty(largest // 2, dtype=torch.float32)
        self._typed: Dict[str, Tuple[Any, Any]] = {}
        self._part_bytes, self._result_bytes = bytes_of(self._parts), bytes_of(self._results)
        self.number = 0

    def place(self, member: int, number: int, size: int) -> memoryview:
        """Return where the chunk of that number is received."""
        begin = (member * _PLACES + number % _PLACES) * self._largest
        return self._part_bytes[begin : begin + size]

    def next(self, dtype: str, mean: bool, size: int) -> memoryview:
        """Return the sum, or the mean, of the next chunk; it stands until WINDOW more have been
        made."""
        slot, count = self.number % WINDOW, size // DTYPES[dtype]
        parts, results = self._views(dtype)
        rows = parts[:, self.number % _PLACES, :count].unbind(0)
        result = results[slot, :count]
        if DTYPES[dtype] > 2:
            total = self._torch.add(rows[0], rows[1], out=result)
        else:
            total = self._wide[:count].copy_(rows[0]).add_(rows[1])
        for row in rows[2:]:
            total.add_(row)
        if mean:
            total.div_(self._members)
        if total is not result:
            result.copy_(total)
        self.number += 1
        return self._result_bytes[slot * self._largest : slot * self._largest + size]

    def _views(self, dtype: str) -> Tuple[Any, Any]:
        if dtype not in self._typed:
            kind = getattr(self._torch, dtype)
            self._typed[dtype] = self._parts.view(kind), self._results.view(kind)
        return self._typed[dtype]
