"""Whoever has connected to a reducer, and the process groups that they form there."""

from __future__ import annotations

import json
import selectors
import socket
from collections import deque
from typing import Any, Callable, Deque, Iterator, List, NamedTuple, Optional

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.protocol import FRAME, WINDOW, Garbled, Greeting, Header
from distrain_nb.worker.reduction.sums import Sums

_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE
# At once from one connection, so that the others get their turn.
READS = 4
_SCRAP = bytearray(1 << 16)


class Chunk(NamedTuple):
    """What a sum needs of every member: the same part, and as many bytes of it."""

    header: Header
    size: int


class Connection:
    """A worker's: first its greeting, then its parts of one reduction after the other."""

    def __init__(
        self, connected: socket.socket, selector: selectors.BaseSelector, find: Callable[..., Group]
    ) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket, self._selector, self._find = connected, selector, find
        self._events = _READ
        self._steps = self._listen()
        self._wanted = next(self._steps)
        self._out: Deque[memoryview] = deque()
        self._group: Optional[Group] = None
        self.chunks: Deque[Chunk] = deque()
        self.received = self.sent = self.bytes_in = self.bytes_out = 0
        self.gone = self._deaf = False
        selector.register(connected, _READ, self.turn)

    def turn(self, events: int) -> None:
        """Go on with what the system says is possible."""
        if self.gone:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._flush()
            if events & selectors.EVENT_READ and not self.gone:
                self._read()
        except (OSError, Garbled):
            self.leave()
        if self._group:
            self._group.go_on()

    def _read(self) -> None:
        for _ in range(READS):
            try:
                count = self._socket.recv_into(_SCRAP if self._deaf else self._wanted)
            except BlockingIOError:
                return
            if not count:
                self.leave()
                return
            self.bytes_in += count
            if not self._deaf:
                self._wanted = self._wanted[count:]
                if not self._wanted:
                    self._wanted = next(self._steps)

    def _listen(self) -> Iterator[memoryview]:
        """The places of all that this worker sends, each to be filled before the next is asked for.
        Raises Garbled."""
        first = bytearray(protocol.GREETING_BYTES)
        yield memoryview(first)
        text = bytearray(protocol.greeting_length(bytes(first)))
        yield memoryview(text)
        greeting = Greeting.decode(bytes(text))
        group = self._find(greeting)
        if greeting.asks:
            answer = json.dumps(group.missing()).encode()
            self.send(protocol.SUM, memoryview(answer))
            yield memoryview(bytearray(1))
        group.join(greeting.member, self)
        self._group = group
        raw = bytearray(protocol.HEADER_BYTES)
        while True:
            yield memoryview(raw)
            header = Header.decode(bytes(raw))
            for size in protocol.chunks(header.size, len(group.ranks)):
                if self.received - group.sums.number > WINDOW:
                    raise Garbled("more than was asked for")
                yield group.sums.place(greeting.member, self.received, size)
                self.received += 1
                self.chunks.append(Chunk(header, size))
                group.go_on()

    def send(self, kind: int, payload: memoryview) -> None:
        """Send as much as the system takes now, and the rest when it takes it."""
        if self.gone:
            return
        self._out += [memoryview(FRAME.pack(kind, len(payload))), payload]
        if len(self._out) == 2:
            try:
                self._flush()
            except OSError:
                self.leave()

    def _flush(self) -> None:
        while self._out:
            try:
                count = self._socket.sendmsg([*self._out][:WINDOW])
            except BlockingIOError:
                break
            self.bytes_out += count
            while self._out and count >= len(self._out[0]):
                count -= len(self._out.popleft())
                self.sent += 1 - len(self._out) % 2
            if count:
                self._out[0] = self._out[0][count:]
        wanted = _BOTH if self._out else _READ
        if wanted != self._events:
            self._events = wanted
            self._selector.modify(self._socket, wanted, self.turn)

    def refuse(self, why: str) -> None:
        """Say why nothing more is summed, and ignore what still comes."""
        self._deaf = True
        self.send(protocol.FAILED, memoryview(why.encode()))

    def leave(self) -> None:
        if not self.gone:
            self.gone = True
            self._selector.unregister(self._socket)
            self._socket.close()
            self._out.clear()


class Group:
    """The members of one process group, in the order of their ranks, None before one connects."""

    def __init__(self, ranks: Any) -> None:
        self.ranks: List[int] = list(ranks)
        self.members: List[Optional[Connection]] = [None] * len(self.ranks)
        self.sums = Sums(len(self.ranks))
        self._failed = ""

    def join(self, index: int, connection: Connection) -> None:
        """Raises Garbled."""
        if self.members[index] is not None:
            raise Garbled(f"rank {self.ranks[index]} has connected twice")
        self.members[index] = connection
        if self._failed:
            connection.refuse(self._failed)

    @property
    def deserted(self) -> bool:
        """Whether all who have come are gone."""
        return all(member is None or member.gone for member in self.members)

    @property
    def absent(self) -> List[int]:
        """The ranks that have not come yet."""
        return [rank for rank, member in zip(self.ranks, self.members) if member is None]

    def go_on(self) -> None:
        """Sum all chunks that every member has sent, as far as the slowest takes the sums."""
        while not self._failed:
            members = [member for member in self.members if member is not None]
            ready = [member for member in members if member.chunks]
            if len(ready) < len(self.ranks):
                self._look_for_the_lost(ready)
                return
            slowest = min((m.sent for m in members if not m.gone), default=self.sums.number)
            if self.sums.number - slowest >= WINDOW:
                return
            self._sum(members)

    def _sum(self, members: List[Connection]) -> None:
        chunks = [member.chunks.popleft() for member in members]
        chunk = chunks[0]
        for rank, other in zip(self.ranks, chunks):
            if other != chunk:
                self._fail(
                    f"the ranks differ: rank {self.ranks[0]} wants {chunk.header}, and "
                    f"rank {rank} {other.header}"
                )
                return
        result = self.sums.next(chunk.header.dtype, chunk.header.mean, chunk.size)
        for member in members:
            member.send(protocol.SUM, result)

    def _look_for_the_lost(self, ready: List[Connection]) -> None:
        for rank, member in zip(self.ranks, self.members):
            if ready and member is not None and member.gone and not member.chunks:
                self._fail(f"rank {rank} has left before {ready[0].chunks[0].header}")
                return

    def _fail(self, why: str) -> None:
        self._failed = why
        for member in self.members:
            if member is not None:
                member.refuse(why)

    def missing(self) -> List[int]:
        """The ranks that others wait for."""
        here = {rank for rank, member in zip(self.ranks, self.members) if member and member.chunks}
        return [rank for rank in self.ranks if rank not in here] if here else []
