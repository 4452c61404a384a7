"""Reducers and the workers' side of them, in threads of this process."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.exchange import Exchange
from distrain_nb.worker.reduction.link import ReductionError
from distrain_nb.worker.reduction.memory import bytes_of
from distrain_nb.worker.reduction.protocol import DTYPES, Greeting
from distrain_nb.worker.reduction.reducer import Reducer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

LONG_S = 120.0


def bound_by(silent: socket.socket) -> str:
    """An address that is taken, where nobody listens."""
    silent.bind(("127.0.0.1", 0))
    return address_of(silent)


def address_of(bound: socket.socket) -> str:
    return f"127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def reducing(number: int) -> Iterator[list[str]]:
    """The addresses of so many reducers."""
    reducers = [Reducer("127.0.0.1:0") for _ in range(number)]
    addresses = [address_of(reducer._listener) for reducer in reducers]
    threads = [threading.Thread(target=reducer.run) for reducer in reducers]
    for thread in threads:
        thread.start()
    try:
        yield addresses
    finally:
        for reducer, thread in zip(reducers, threads, strict=True):
            reducer.stop()
            thread.join()


@pytest.fixture(scope="module")
def three_reducers() -> Iterator[list[str]]:
    with reducing(3) as addresses:
        yield addresses


_groups = iter(range(1_000_000))


@contextmanager
def members(addresses: list[str], number: int) -> Iterator[list[Exchange]]:
    """A new group of so many members, ranks 10, 11, … of the job."""
    ranks, name = tuple(range(10, 10 + number)), f"group {next(_groups)}"
    exchanges = [Exchange(addresses, Greeting(name, ranks, n)) for n in range(number)]
    try:
        yield exchanges
    finally:
        for exchange in exchanges:
            exchange.close()


def reduce(
    exchange: Exchange, tensor: Any, mean: bool = False, timeout: float = LONG_S
) -> Future[None]:
    done: Future[None] = Future()

    def finish(error: ReductionError | None, _: Any = tensor) -> None:  # its memory is needed
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    dtype = str(tensor.dtype).rpartition(".")[2]
    exchange.reduce(bytes_of(tensor), dtype, mean, timeout, finish)
    return done


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
        sizes = list(protocol.chunks(length))
        assert sum(sizes) == length
        assert len(sizes) <= protocol.CHUNKS or max(sizes) == protocol.CHUNK_BYTES


lists_of_tensors = st.lists(
    st.tuples(st.sampled_from([*DTYPES]), st.integers(1, 150_000), st.booleans()),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
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
    count = protocol.CHUNK_BYTES * protocol.WINDOW // 4 * 3 * 3 + 12_345
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


@pytest.mark.parametrize("other", [torch.ones(40), torch.ones(50, dtype=torch.float64)])
def test_ranks_that_differ_are_told_so(three_reducers: list[str], other: Any) -> None:
    with members(three_reducers, 2) as exchanges:
        pending = [reduce(exchanges[0], torch.ones(50)), reduce(exchanges[1], other)]
        for each in pending:
            with pytest.raises(ReductionError, match=r"rank 10 wants .* 200 bytes .*, and rank 11"):
                each.result(LONG_S)


def test_who_has_left_is_named_and_nothing_more_is_reduced(three_reducers: list[str]) -> None:
    with members(three_reducers, 3) as exchanges:
        for each in [reduce(exchange, torch.ones(8)) for exchange in exchanges]:
            each.result(LONG_S)
        exchanges[1].close()
        pending = [reduce(exchanges[n], torch.ones(8)) for n in (0, 2)]
        for each in pending:
            with pytest.raises(ReductionError, match="rank 11 has left before all-reduce 1,"):
                each.result(LONG_S)
        with pytest.raises(ReductionError, match="rank 11 has left"):
            reduce(exchanges[0], torch.ones(8)).result(LONG_S)
        with pytest.raises(ReductionError, match="has been destroyed"):
            reduce(exchanges[1], torch.ones(8)).result(LONG_S)


def test_who_does_not_come_is_named(three_reducers: list[str]) -> None:
    with members(three_reducers, 3) as exchanges:
        late = reduce(exchanges[0], torch.ones(8))
        pending = reduce(exchanges[2], torch.ones(8), timeout=1)
        with pytest.raises(ReductionError, match="rank 11 did not come in time to all-reduce 0"):
            pending.result(LONG_S)
        reduce(exchanges[1], torch.ones(8)).result(LONG_S)  # all have sent what it takes
        late.result(LONG_S)
        with pytest.raises(ReductionError, match="rank 12 has left before all-reduce 1,"):
            reduce(exchanges[0], torch.ones(8)).result(LONG_S)


def test_a_reducer_that_does_not_answer_is_named(three_reducers: list[str]) -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        exchanges = stack.enter_context(members([three_reducers[0], address], 2))
        pending = [reduce(each, torch.ones(1 << 20), timeout=1) for each in exchanges]
        for each in pending:
            with pytest.raises(ReductionError, match=rf"^reducer 1 \({address}\) did not answer"):
                each.result(LONG_S)


def test_a_reducer_that_is_not_there_is_named() -> None:
    with socket.socket() as silent, members([bound_by(silent)], 2) as exchanges:
        address = address_of(silent)
        pending = reduce(exchanges[0], torch.ones(1), timeout=0.5)
        with pytest.raises(ReductionError, match=rf"reducer 0 \({address}\) can't be reached"):
            pending.result(LONG_S)


class Relay:
    """Stands before a reducer: holds up what passes after so many bytes, and can cut it off."""

    def __init__(self, address: str, hold_after: int) -> None:
        self._to = protocol.split_address(address)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.held, self.goes_on = threading.Event(), threading.Event()
        self._hold_after = hold_after
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                pair = self._listener.accept()[0], socket.create_connection(self._to)
                self._sockets += pair
                for ends in (pair, pair[::-1]):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(1 << 16):
                passed += len(data)
                if passed > self._hold_after:
                    self.held.set()
                    self.goes_on.wait()
                target.sendall(data)

    def cut(self) -> None:
        self.goes_on.set()
        for each in (*self._sockets, self._listener):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.mark.parametrize("held_for_ever", [False, True])
def test_a_link_that_is_held_up_in_mid_bucket(
    three_reducers: list[str], held_for_ever: bool
) -> None:
    relay = Relay(three_reducers[0], hold_after=5_000_000)
    tensors = [torch.full((4_000_000,), float(n)) for n in (1, 2)]
    with members([three_reducers[1], relay.address], 2) as exchanges:
        pending = [reduce(each, tensor) for each, tensor in zip(exchanges, tensors, strict=True)]
        assert relay.held.wait(LONG_S)
        assert not any(each.done() for each in pending)
        if held_for_ever:
            relay.cut()
            for each in pending:
                with pytest.raises(ReductionError, match=rf"^reducer 1 \({relay.address}\)"):
                    each.result(LONG_S)
        else:
            relay.goes_on.set()
            for each in pending:
                each.result(LONG_S)
            assert all(bool((tensor == 3).all()) for tensor in tensors)
            relay.cut()


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\n\r\n", b"dRS1\xff\xff\xff\xff", b"dRS1\2\0\0\0{}"]
)
def test_who_speaks_something_else_is_shown_the_door(
    three_reducers: list[str], said: bytes
) -> None:
    with socket.create_connection(protocol.split_address(three_reducers[0])) as stranger:
        stranger.sendall(said)
        with suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    with members(three_reducers, 2) as exchanges:
        for each in [reduce(exchange, torch.ones(8)) for exchange in exchanges]:
            each.result(LONG_S)


@pytest.mark.parametrize("members", [[], [0]])
def test_a_group_that_has_nothing_to_sum_is_refused(members: list[int]) -> None:
    said = json.dumps(["group", members, 0, False]).encode()
    with pytest.raises(protocol.Garbled, match="no member 0"):
        Greeting.decode(said)
