"""Compares steps of the world with those of one rank on the batches of all (`--prove N`).

One rank makes the steps twice, the second time with the samples of each batch in the opposite
order, and gradients off by a rounding. What these two differ by is float's noise; the world may
differ by ten times as much.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.record import PROOF, Fact, Facts, of_kind, unpacked

PROVE_VARIABLE = "DISTRAIN_PROVE"

GRADIENTS, WEIGHTS = "gradients", "weights"
# Of the tensor's norm, and of the largest norm of a tensor at that step.
_FLOOR, _OF_LARGEST = 1e-5, 0.1
_TIMES_THE_NOISE = 10.0
_EPSILON = 1e-7  # what float32 can tell apart
_ALIKE = 0.02  # how closely a factor has to fit

Row = Mapping[str, Any]  # what a rank noted of a step: projections of gradients and of weights


class ProofResult(NamedTuple):
    """What a comparison has found: the first difference, or that there is none."""

    steps: int
    largest: float  # difference, of a tensor's norm
    parted: Optional[Dict[str, Any]]  # the fields of the finding, with its ranks and line


def compared(
    world: Mapping[int, Sequence[Row]], one: Sequence[Row], again: Sequence[Row]
) -> ProofResult:
    """Compare the ranks of the world with one rank, step by step: gradients, then weights."""
    largest = 0.0
    steps = min(map(len, (*world.values(), one, again)))
    for step in range(steps):
        for kind in (GRADIENTS, WEIGHTS):
            for tensor, noise, bound in _bounds(one[step], again[step], kind):
                expected = _pair(one[step], kind, tensor)
                apart = {r: _apart(_pair(rows[step], kind, tensor), expected)
                         for r, rows in world.items()}  # fmt: skip
                norm = max(expected[1], 1e-30)
                parted = [rank for rank, difference in apart.items() if difference > bound]
                if parted:
                    rank = parted[0]
                    fields = {
                        "step": step + 1,
                        "kind": kind,
                        "number": tensor,
                        "noise": f"{max(noise / norm, _EPSILON):.0e}",
                        **_size(_pair(world[rank][step], kind, tensor), expected, len(world)),
                        "ranks": parted,
                        "place": world[rank][step]["lines"][kind],
                    }
                    return ProofResult(steps, largest, fields)
                if all(map(math.isfinite, expected)) and bound < norm:
                    largest = max(largest, *(value / norm for value in apart.values()))
    return ProofResult(steps, largest, None)


def ranks_are_equal(world: Mapping[int, Sequence[Row]]) -> bool:
    """Return whether all ranks have the same weights after each step."""
    rows = list(world.values())
    return all(
        _apart(pair, other) <= _floor(first) * max(pair[1], other[1])
        for of_rank in rows[1:]
        for first, row in zip(rows[0], of_rank)
        for pair, other in zip(_pairs(first, WEIGHTS), _pairs(row, WEIGHTS))
    )


def proof_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield where the world has parted from one rank."""
    for noted in facts.values():
        for fact in of_kind(noted, PROOF):
            yield parted(fact)


def parted(fact: Fact) -> Deviation:
    """Return the finding about a difference that a rank has noted."""
    return Deviation(deviations.PARTED, tuple(fact["of_ranks"]), fact["place"], fact["fields"])


def _bounds(one: Row, again: Row, kind: str) -> Iterator[Tuple[int, float, float]]:
    """Yield each tensor, its noise, and how far the world's may be from it."""
    first, second = _pairs(one, kind), _pairs(again, kind)
    largest = max((norm for _, norm in first if math.isfinite(norm)), default=0.0)
    floor = _floor(one)
    for tensor, (pair, other) in enumerate(zip(first, second)):
        noise = _apart(pair, other)
        least = floor * max(pair[1], _OF_LARGEST * largest)
        yield tensor, noise, max(least, _TIMES_THE_NOISE * noise)


def _floor(row: Row) -> float:
    return max(_FLOOR, float(row["rounding"]))


def _pairs(row: Row, kind: str) -> List[Tuple[float, float]]:
    numbers = unpacked(row[kind])
    return list(zip(numbers[::2], numbers[1::2]))


def _pair(row: Row, kind: str, tensor: int) -> Tuple[float, float]:
    return _pairs(row, kind)[tensor]


def _apart(one: Tuple[float, float], other: Tuple[float, float]) -> float:
    """Return how far two tensors are apart by projection and norm. What both lack is no
    difference; what one lacks is one of its whole size."""
    values = (*one, *other)
    if not all(map(math.isfinite, values)):
        alike = [math.isfinite(a) == math.isfinite(b) for a, b in zip(one, other)]
        return 0.0 if all(alike) else math.inf
    return max(abs(a - b) for a, b in zip(one, other))


def _size(pair: Tuple[float, float], expected: Tuple[float, float], ranks: int) -> Dict[str, str]:
    """Return how large a difference is, and what a known factor comes from."""
    norm = expected[1]
    if not norm or not all(map(math.isfinite, (*pair, *expected))):
        return {"by": "has a value where the other has none", "hint": ""}
    factor, difference = pair[1] / norm, _apart(pair, expected) / norm
    is_scaled = _apart(pair, (factor * expected[0], pair[1])) <= _ALIKE * max(pair[1], norm)
    if not is_scaled or abs(factor - 1) < _ALIKE:
        return {"by": f"differs by {100 * difference:.2g} % of its size", "hint": ""}
    if abs(factor - 1 / ranks) < _ALIKE / ranks:
        hint = "The loss is a sum over its batch: take its mean, or multiply it by the world size"
    elif abs(factor - ranks) < _ALIKE * ranks:
        hint = "Gradients are summed over ranks: divide them by the world size"
    else:
        hint = ""
    return {"by": f"is {factor:.3g} times as large", "hint": hint and f". {hint}"}
