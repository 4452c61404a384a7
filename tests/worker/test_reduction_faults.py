"""Whoever is missing, stopped, cut off or garbled among reducers and workers is named."""

from __future__ import annotations

import json
import resource
import socket
import threading
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
import torch

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.exchange import Exchange
from distrain_nb.worker.reduction.link import ReductionError
from distrain_nb.worker.reduction.protocol import Greeting
from tests.conftest import eventually
from tests.worker.reducing import LONG_S, address_of, bound_by, members, reduce, reducing

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def three_reducers() -> Iterator[list[str]]:
    with reducing(3) as addresses:
        yield addresses


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


def test_a_rank_that_is_there_twice_is_told_so(three_reducers: list[str]) -> None:
    own = Greeting("twice", (10, 11), 0)
    first, other, again = (Exchange(three_reducers, own._replace(member=n)) for n in (0, 1, 0))
    with closing(first), closing(other), closing(again):
        for _ in range(2):
            for each in [reduce(exchange, torch.ones(8)) for exchange in (first, other)]:
                each.result(LONG_S)
            with pytest.raises(ReductionError, match="rank 10 has connected twice"):
                reduce(again, torch.ones(8)).result(LONG_S)


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


def test_a_group_that_some_never_join_is_forgotten_when_the_others_have_left() -> None:
    said: list[str] = []
    with reducing(1, said.append, 0.5) as addresses, members(addresses, 3) as exchanges:
        with pytest.raises(ReductionError, match="rank 11, rank 12 did not come in time"):
            reduce(exchanges[0], torch.ones(8), timeout=1).result(LONG_S)
        assert eventually(lambda: said)
        assert said == [
            "a process group is forgotten: rank 11, rank 12 never came, and the others have left"
        ]
        with pytest.raises(ReductionError, match="rank 10, rank 12 did not come in time"):
            reduce(exchanges[1], torch.ones(8), timeout=1).result(LONG_S)


def test_who_connects_when_there_are_no_descriptors_left_is_served_later() -> None:
    said: list[str] = []
    with reducing(1, said.append) as addresses, socket.socket() as early:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            early.connect(protocol.split_address(addresses[0]))
            assert eventually(lambda: said)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        early.sendall(Greeting("group", (0, 1), 0, asks=True).encode())
        assert early.recv(100).endswith(b"[]")
        with members(addresses, 2) as exchanges:
            for each in [reduce(exchange, torch.ones(8)) for exchange in exchanges]:
                each.result(LONG_S)
    assert said == [
        "can't accept a connection, trying again: [Errno 24] Too many open files",
        "takes connections again",
    ]


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
    "said", [b"GET / HTTP/1.1\r\n\r\n", b"dRS3\xff\xff\xff\xff", b"dRS3\2\0\0\0{}"]
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
