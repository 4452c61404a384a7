"""What is compared with one rank: a difference beyond the noise is named, and noise is none."""

from __future__ import annotations

from collections import UserDict
from typing import Any, NamedTuple

import pytest
import torch

from distrain_nb.worker.facts.comparing import compare
from distrain_nb.worker.facts.proof import compared, parted, ranks_are_equal
from distrain_nb.worker.facts.record import packed
from distrain_nb.worker.rank.batches import Unprovable, joined, leaves, rebuilt


def row(gradient: float, weight: float, rounding: float = 2.0**-20) -> dict[str, Any]:
    """A step's row with one tensor, whose projection is its norm."""
    numbers = {name: packed([v, v]) for name, v in (("gradients", gradient), ("weights", weight))}
    return {**numbers, "rounding": rounding, "lines": {"gradients": "line 3", "weights": "line 4"}}


def test_equal_steps_and_roundings_are_proven() -> None:
    one, again = [row(1.0, 0.5), row(0.9, 0.4)], [row(1.00001, 0.5), row(0.9, 0.4)]
    world = {0: [row(1.00005, 0.5), row(0.9, 0.4)], 1: [row(1.0, 0.5), row(0.9, 0.4)]}
    comparison = compared(world, one, again)
    assert comparison.steps == 2 and comparison.parted is None
    assert 4e-5 < comparison.largest < 6e-5
    assert ranks_are_equal({0: one, 1: one}) and not ranks_are_equal({0: one, 1: one[::-1]})


@pytest.mark.parametrize(
    ("gradient", "weight", "fields"),
    [
        (0.5, 0.5, {"kind": "gradients", "place": "line 3", "by": "is 0.5 times as large"}),
        (2.0, 0.5, {"kind": "gradients", "hint": ". Gradients are summed over ranks: divide them"
                    " by the world size"}),
        (1.0, 0.505, {"kind": "weights", "place": "line 4", "by": "differs by 1 % of its size"}),
        (float("nan"), 0.5, {"by": "has a value where the other has none"}),
    ],
)  # fmt: skip
def test_the_first_difference_is_named(
    gradient: float, weight: float, fields: dict[str, str]
) -> None:
    one = [row(1.0, 0.5), row(1.0, 0.5)]
    other = [row(1.0, 0.5), row(gradient, weight)]
    first = compared({0: one, 1: other}, one, one).parted
    assert first is not None and (first["step"], first["ranks"]) == (2, [1])
    assert {name: first[name] for name in fields} == fields


def test_numbers_of_16_bits_have_a_larger_noise() -> None:
    one, other = [row(1.0, 0.5, 2.0**-8)], [row(1.003, 0.5, 2.0**-8)]
    assert compared({0: other}, one, one).parted is None
    assert compared({0: [row(0.5, 0.5)]}, one, one).parted is not None


def test_a_difference_is_a_finding() -> None:
    fields = {"step": 1, "tensor": "weight", "by": "differs", "noise": "1e-07", "hint": ""}
    fact = {"kind": "proof", "of_ranks": [0, 1], "place": "line 3", "fields": fields}
    (deviation,) = compare({0: [fact], 1: []})
    assert deviation == parted(fact) and deviation.code == "proof.parted"
    assert deviation.sentence.startswith("line 3: step 1 differs from that of one rank")
    assert compare({0: [fact], 1: []}, ["proof"]) == []


class Pair(NamedTuple):
    """A batch of a type of its own."""

    x: Any
    names: list[str]


def test_batches_are_joined_in_their_own_structure() -> None:
    first = UserDict(pair=Pair(torch.tensor([1, 2]), ["a", "b"]), scale=2.0)
    second = UserDict(pair=Pair(torch.tensor([3, 4]), ["c", "d"]), scale=2.0)
    parts = [leaves(first), leaves(second)]
    whole = rebuilt(first, iter(joined(parts, turned=False)))
    assert type(whole) is UserDict and type(whole["pair"]) is Pair
    assert whole["pair"].x.tolist() == [1, 2, 3, 4] and whole["pair"].names == [*"abcd"]
    assert whole["scale"] == 2.0 and first["pair"].x.tolist() == [1, 2]
    turned = rebuilt(first, iter(joined(parts, turned=True)))
    assert turned["pair"].x.tolist() == [4, 3, 2, 1] and turned["pair"].names == [*"dcba"]


def test_batches_that_cannot_be_joined_say_why() -> None:
    with pytest.raises(Unprovable, match=r"different shapes \(2×3 and 1×3\)"):
        joined([[torch.ones(2, 3)], [torch.ones(1, 3)]], turned=False)
    with pytest.raises(Unprovable, match="objects of type object"):
        leaves([object()])
    with pytest.raises(Unprovable, match="numbers that differ"):
        joined([[1], [2]], turned=False)
