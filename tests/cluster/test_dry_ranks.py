"""Which ranks of a large world are tried alone, and what they are told of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from distrain_nb.cluster.dry_ranks import DryRanks, dry_ranks
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout, Pool
from distrain_nb.program import NO_PROGRAM, Program
from distrain_nb.worker.facts import dry
from distrain_nb.worker.facts.comparing import compare
from distrain_nb.worker.facts.record import DRY


def of_torch() -> Program:
    return replace(NO_PROGRAM, imports=("torch",))


def chosen(text: str, layout: Layout | None = None, steps: str = "") -> DryRanks:
    layout = layout or Layout(ranks_per_replica=8, workers=Pool(replicas=127))
    return dry_ranks(text, steps, of_torch(), layout)


def test_ranks_that_differ_are_tried() -> None:
    assert chosen("777").tried == (0, 777)
    assert chosen("0").tried == (0,)
    assert (chosen("7/1024").tried, chosen("7/64").world) == ((0, 7), 64)
    tried = chosen("all").tried
    assert tried == (*range(9), 16, 32, 64, 128, 256, 512, 1016, 1023)
    for shape in ((128, 8), (2, 64, 8), (4, 4, 8, 8)):  # second and last in each dimension
        stride = 1024
        for size in shape:
            stride //= size
            assert {rank // stride % size for rank in tried} >= {0, 1, size - 1}


def test_figures_are_those_of_the_layouts_machines() -> None:
    layout = Layout(on="vertex", workers=Pool(machine="a3-highgpu-8g", replicas=128,
                    accelerator="NVIDIA_H100_80GB", accelerator_count=8))  # fmt: skip
    ranks = chosen("all", layout)
    assert (ranks.world, ranks.per_replica, ranks.devices) == (1024, 8, 8)
    assert ranks.device_bytes == 80_000_000_000 and ranks.gbps
    (last,) = dry_ranks("1023", "", of_torch(), layout).placed("night")[1:]
    assert last.environment["LOCAL_RANK"] == "7" and last.environment["GROUP_RANK"] == "127"
    assert json.loads(last.environment["CLUSTER_SPEC"])["task"] == {
        "type": "workerpool1", "index": 126,
    }  # fmt: skip


def test_an_exchange_takes_the_time_of_a_ring() -> None:
    everybody, one_of_each = range(16), range(0, 16, 4)
    assert dry.seconds("all_reduce", everybody, 10**9, 4, 8.0) == pytest.approx(2 * 15 / 16)
    assert dry.seconds("all_gather", one_of_each, 10**9, 4, 8.0) == pytest.approx(3 / 4 * 4)
    assert dry.seconds("all_reduce", range(4), 10**9, 4, 8.0) is None  # within a machine


def test_more_memory_than_the_device_has_is_a_finding() -> None:
    fact = {"kind": DRY, "of": 3, "memory": {"parameters": 17_000_000_000}, "device": "T4",
            "device_bytes": 16_000_000_000}  # fmt: skip
    (found,) = compare({3: [fact]})
    assert found.code == "memory.too-large"
    assert found.text.startswith("rank 3 would need more memory than the device has: 17 GB")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1024", "the layout has 1,024 ranks, 0 to 1023"),
        ("7/12", "a world of 12 doesn't consist of replicas with 8 ranks each"),
        ("last", "expected a rank, such as 777 or 777/1024, or all"),
    ],
)
def test_ranks_that_there_are_not_are_refused(text: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        chosen(text)
