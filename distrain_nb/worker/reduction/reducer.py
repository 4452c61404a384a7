"""A reducer: sums what the workers of each process group send, and sends the sums to all of them.

It keeps nothing between reductions and runs none of the program. One thread does all: the system
goes on receiving and sending while it sums. The members' parts are added in the order of their
ranks, whichever comes first, so that a sum is the same every time.
`python -m distrain_nb.worker.reduction.reducer HOST:PORT [LABEL]` starts one.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import socket
import sys
from typing import Any, Dict, List, Mapping, Tuple

from distrain_nb.worker.machine import system
from distrain_nb.worker.reduction.counting import amount
from distrain_nb.worker.reduction.members import Connection, Group
from distrain_nb.worker.reduction.protocol import Greeting


class Reducer:
    """Listens at `address`, `host:port`, until `stop` is called."""

    def __init__(self, address: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = system.listen(address)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._wakes, self._waking = socket.socketpair()
        self._selector.register(self._wakes, selectors.EVENT_READ, lambda _: None)
        self._groups: Dict[Tuple[str, Tuple[int, ...]], Group] = {}
        self._connections: List[Connection] = []
        self._stopped = False
        self._chunks = self._in = self._out = 0

    def run(self) -> None:
        while not self._stopped:
            for key, events in self._selector.select():
                key.data(events)
            if any(connection.gone for connection in self._connections):
                self._forget()

    def stop(self, *_: Any) -> None:
        """May be called by a handler of signals."""
        self._stopped = True
        self._waking.send(b"\0")

    def _accept(self, _: int) -> None:
        connected, _ = self._listener.accept()
        self._connections.append(Connection(connected, self._selector, self._group))

    def _group(self, greeting: Greeting) -> Group:
        key = greeting.group, greeting.ranks
        group = self._groups.get(key) or Group(greeting.ranks)
        if not greeting.asks:
            self._groups[key] = group
        return group

    def _forget(self) -> None:
        for connection in self._connections:
            if connection.gone:
                self._count(connection)
        self._connections = [c for c in self._connections if not c.gone]
        for key, group in [*self._groups.items()]:
            if group.over:
                self._chunks += group.sums.number
                del self._groups[key]

    def _count(self, connection: Connection) -> None:
        self._in += connection.bytes_in
        self._out += connection.bytes_out

    def __str__(self) -> str:
        """What it has done so far."""
        chunks = self._chunks + sum(group.sums.number for group in self._groups.values())
        taken = self._in + sum(c.bytes_in for c in self._connections)
        given = self._out + sum(c.bytes_out for c in self._connections)
        return f"{chunks:,} sums; {amount(taken)} in, {amount(given)} out"


def serve(address: str, label: str = "reducer") -> None:
    """Be a reducer until the process is told to end, and say then what it has done."""
    importlib.import_module("torch").set_num_threads(1)
    reducer = Reducer(address)
    signal.signal(signal.SIGTERM, reducer.stop)
    reducer.run()
    print(f"{label}: {reducer}", flush=True)


def address(environment: Mapping[str, str]) -> str:
    """Where the reducer of that `CLUSTER_SPEC` is to listen."""
    spec = json.loads(environment["CLUSTER_SPEC"])
    task = spec["task"]
    return str(spec["cluster"][task["type"]][int(task["index"])])


if __name__ == "__main__":
    system.die_with_parent(os.getppid())
    serve(*sys.argv[1:3])
