"""Reducers in threads of this process, and groups that use them."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from distrain_nb.worker.reduction.exchange import Exchange
from distrain_nb.worker.reduction.protocol import Greeting
from distrain_nb.worker.reduction.reducer import Reducer
from distrain_nb.worker.reduction.tensor_bytes import bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.worker.reduction.link import ReductionError

LONG_S = 120.0


def bound_by(silent: socket.socket) -> str:
    """An address that is taken, where nobody listens."""
    silent.bind(("127.0.0.1", 0))
    return address_of(silent)


def address_of(bound: socket.socket) -> str:
    return f"127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def reducing(number: int, *settings: Any) -> Iterator[list[str]]:
    """The addresses of so many reducers."""
    reducers = [Reducer("127.0.0.1:0", *settings) for _ in range(number)]
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
