"""Reducers and the workers' side of them, in threads of this process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.protocol import DTYPES
from tests.conftest import eventually
from tests.worker.reducing import LONG_S, members, reduce, reducing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.worker.reduction.exchange import Exchange

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def three_reducers() -> Iterator[list[str]]:
    with reducing(3) as addresses:
        yield addresses


def by_hand(tensors: list[Any], mean: bool) -> Any:
    """In the order of the ranks, 16 bits in float32."""
    wide = tensors[0].dtype if tensors[0].dtype.itemsize > 2 else torch.float32
    total = tensors[0].to(wide)
    for tensor in tensors[1:]:
        total = total + tensor
    return (total / len(tensors) if mean else total).to(tensors[0].dtype)


@given(size=st.integers(1, 3 << 20), reducers=st.integers(1, 20), number=st.integers(0, 1 << 32))
def test_parts_and_their_chunks_are_the_whole_tensor(size: int, reducers: int, number: int) -> None:
    parts = protocol.parts(size, reducers, number)
    assert [part.begin for part in parts] == [0, *(part.end for part in parts[:-1])]
    assert parts[-1].end == size
    assert len({part.reducer for part in parts}) == len(parts) <= reducers
    assert all(0 <= part.reducer < reducers and part.begin < part.end for part in parts)
    lengths = [part.end - part.begin for part in parts]
    assert max(lengths) - min(lengths) < 2 * protocol.ALIGNMENT
    for part, length in zip(parts, lengths, strict=True):
        assert part.begin % max(DTYPES.values()) == 0
        sizes = list(protocol.chunks(length, 8))
        assert sum(sizes) == length
        assert len(sizes) <= protocol.CHUNKS or max(sizes) == protocol.largest_chunk(8)


lists_of_tensors = st.lists(
    st.tuples(st.sampled_from([*DTYPES]), st.integers(1, 150_000), st.booleans()),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25)
@given(number=st.integers(2, 4), wanted=lists_of_tensors, seed=st.integers(0, 1000))
def test_sums_are_those_in_the_order_of_ranks_on_every_rank(
    three_reducers: list[str], number: int, wanted: list[tuple[str, int, bool]], seed: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    with members(three_reducers, number) as exchanges:
        given_, pending = [], []
        for dtype, count, mean in wanted:
            tensors = [
                torch.randn(count, generator=random).to(getattr(torch, dtype)) for _ in exchanges
            ]
            given_.append((by_hand(tensors, mean), tensors))
            order = torch.randperm(number, generator=random).tolist()
            pending += [reduce(exchanges[n], tensors[n], mean) for n in order]
        for each in pending:
            each.result(LONG_S)
    for expected, tensors in given_:
        assert all(torch.equal(tensor, expected) for tensor in tensors)


def test_more_than_a_window_goes_through(three_reducers: list[str]) -> None:
    count = protocol.largest_chunk(2) * protocol.WINDOW // 4 * 3 * 3 + 12_345
    tensors = [torch.arange(count, dtype=torch.float32) * n for n in (1, 2)]
    with members(three_reducers, 2) as exchanges:
        first = reduce(exchanges[0], tensors[0])
        reduce(exchanges[1], tensors[1]).result(LONG_S)
        first.result(LONG_S)
    assert torch.equal(tensors[0], torch.arange(count, dtype=torch.float32) * 3)
    assert torch.equal(tensors[0], tensors[1])


def test_what_follows_a_reduction_may_wait_for_another(three_reducers: list[str]) -> None:
    """As the hooks of PowerSGD do."""
    with members(three_reducers, 2) as exchanges:
        ended = [Future[float]() for _ in exchanges]
        for exchange, end in zip(exchanges, ended, strict=True):

            def next_one(_: Any, exchange: Exchange = exchange, end: Any = end) -> None:
                tensor = torch.ones(4)
                reduce(exchange, tensor).result(LONG_S)
                end.set_result(tensor.sum().item())

            reduce(exchange, torch.ones(9)).add_done_callback(next_one)
        assert [end.result(LONG_S) for end in ended] == [8.0, 8.0]
        for each in [reduce(exchange, torch.ones(4)) for exchange in exchanges]:
            each.result(LONG_S)


def test_a_reducer_that_is_told_to_end_again_ends_well() -> None:
    """Its interpreter takes a while to end, with torch."""
    command = [sys.executable, "-m", "distrain_nb.worker.reduction.reducer", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reducer:
        assert reducer.stdout
        assert eventually(lambda: _catches(reducer.pid, signal.SIGTERM))
        reducer.send_signal(signal.SIGTERM)
        assert "0 sums" in reducer.stdout.readline()
        while reducer.poll() is None:
            reducer.send_signal(signal.SIGTERM)
            time.sleep(0.01)
    assert reducer.returncode == 0


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught >> (number - 1) & 1)
