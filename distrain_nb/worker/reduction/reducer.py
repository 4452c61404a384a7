"""A reducer: sums what the workers of each process group send, and sends the sums to all of them.

It keeps nothing between reductions and runs none of the program. One thread does all: the system
goes on receiving and sending while it sums. The members' parts are added in the order of their
ranks, whichever comes first, so that a sum is the same every time.
`python -m distrain_nb.worker.reduction.reducer HOST:PORT [LABEL]` starts one.
"""

from __future__ import annotations

import functools
import heapq
import importlib
import itertools
import json
import os
import selectors
import signal
import socket
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from distrain_nb.worker.machine import ports, system
from distrain_nb.worker.reduction.connection import Connection
from distrain_nb.worker.reduction.members import Group
from distrain_nb.worker.reduction.protocol import Greeting
from distrain_nb.worker.reduction.sum_count import amount

ACCEPTS_AGAIN_AFTER_S = 1.0
# A worker greets as soon as it is connected. Whoever doesn't holds no descriptor for long: another
# user of the machine could take all that this process may have, and keep the workers out.
GREETS_WITHIN_S, MOST_SILENT = 30.0, 64
# As long as a group of gloo waits, unless the program says otherwise.
FORGOTTEN_AFTER_S = 1800.0

_Key = Tuple[str, Tuple[int, ...]]


class Reducer:
    """Listens at `address`, `host:port`, until `stop` is called. `say` is given what its log is to
    have. A group that some members never joined is forgotten so many seconds after the others have
    left."""

    def __init__(
        self,
        address: str,
        say: Callable[[str], None] = print,
        forgotten_after: float = FORGOTTEN_AFTER_S,
    ) -> None:
        self._say, self._forgotten_after = say, forgotten_after
        self._selector = selectors.DefaultSelector()
        self._listener = ports.listen(address)
        self._listen()
        self._wakes, self._waking = socket.socketpair()
        self._selector.register(self._wakes, selectors.EVENT_READ, lambda _: None)
        self._groups: Dict[_Key, Group] = {}
        self._deserted: Set[_Key] = set()
        self._connections: List[Connection] = []
        # What is due later: when, a number that no other has, and what to do.
        self._later: List[Tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._stopped = self._refused = self._troubled = False
        self._chunks = self._in = self._out = 0

    def run(self) -> None:
        while not self._stopped:
            for key, events in self._selector.select(self._until_next()):
                key.data(events)
            for group in self._groups.values():
                group.grant()
            for connection in self._connections:
                connection.flush()
            if any(connection.gone for connection in self._connections):
                self._forget()

    def _until_next(self) -> Optional[float]:
        """Do what is due; the seconds until more is."""
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[2]()
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None

    def _after(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), do))

    def stop(self, *_: Any) -> None:
        """Stop serving. A handler of signals may call this."""
        self._stopped = True
        self._waking.send(b"\0")

    def _accept(self, _: int) -> None:
        """Accept a connection; without descriptors or memory, leave it in the system's queue."""
        try:
            connected, _ = self._listener.accept()
        except OSError as error:
            self._selector.unregister(self._listener)
            self._after(ACCEPTS_AGAIN_AFTER_S, self._listen)
            if not self._refused:
                self._say(f"can't accept a connection, trying again: {error}")
            self._refused = True
            return
        if self._refused:
            self._say("takes connections again")
        self._refused = False
        try:
            connection = Connection(connected, self._selector, self._group)
        except OSError:  # it has gone already
            connected.close()
            return
        self._connections.append(connection)
        self._after(GREETS_WITHIN_S, functools.partial(self._part_from_silent, connection))
        silent = [c for c in self._connections if not (c.greeted or c.gone)]
        if len(silent) > MOST_SILENT:
            silent[0].leave()

    def _part_from_silent(self, connection: Connection) -> None:
        if not (connection.greeted or connection.gone):
            connection.leave()

    def _listen(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

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
                if connection.trouble and not self._troubled:  # once: strangers may come often
                    self._say(f"a connection was closed: {connection.trouble}")
                    self._troubled = True
        self._connections = [c for c in self._connections if not c.gone]
        for key, group in [*self._groups.items()]:
            if group.deserted and not group.absent:
                self._drop(key)
            elif group.deserted and key not in self._deserted:
                self._deserted.add(key)
                self._after(self._forgotten_after, functools.partial(self._give_up, key))

    def _give_up(self, key: _Key) -> None:
        self._deserted.discard(key)
        group = self._groups.get(key)
        if group is not None and group.deserted:
            self._drop(key)
            absent = ", ".join(f"rank {rank}" for rank in group.absent)
            self._say(
                f"a process group is forgotten: {absent} never came, and the others have left"
            )

    def _drop(self, key: _Key) -> None:
        self._chunks += self._groups.pop(key).sums.number

    def _count(self, connection: Connection) -> None:
        self._in += connection.bytes_in
        self._out += connection.bytes_out

    def __str__(self) -> str:
        """Return counts of the sums and bytes so far."""
        chunks = self._chunks + sum(group.sums.number for group in self._groups.values())
        taken = self._in + sum(c.bytes_in for c in self._connections)
        sent = self._out + sum(c.bytes_out for c in self._connections)
        return f"{chunks:,} sums; {amount(taken)} in, {amount(sent)} out"


def serve(address: str, label: str = "reducer") -> None:
    """Run as a reducer until the process is told to end, and then print its counts."""
    importlib.import_module("torch").set_num_threads(1)

    def say(words: object) -> None:
        print(f"{label}: {words}", flush=True)

    reducer = Reducer(address, say)
    signal.signal(signal.SIGTERM, reducer.stop)
    reducer.run()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is told again where its end takes long
    say(reducer)


def address(environment: Mapping[str, str]) -> str:
    """Return where the reducer of that `CLUSTER_SPEC` is to listen."""
    spec = json.loads(environment["CLUSTER_SPEC"])
    task = spec["task"]
    return str(spec["cluster"][task["type"]][int(task["index"])])


if __name__ == "__main__":
    if len(sys.argv) < 2 or ":" not in sys.argv[1]:
        sys.exit("usage: python -m distrain_nb.worker.reduction.reducer HOST:PORT [NAME]")
    system.die_with_parent(os.getppid())
    serve(*sys.argv[1:3])
