"""Connections to a reducer, and the process groups that they form there.

Flow control: how far the members of a group may send, so that it fits into a reducer's port.
"""

from __future__ import annotations

import json
import selectors
import socket
from collections import deque
from itertools import islice
from typing import Any, Callable, Deque, Iterator, List, NamedTuple, Optional

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.protocol import (
    FRAME,
    PORT_BYTES,
    WINDOW,
    Garbled,
    Greeting,
    Header,
    first_credit,
    largest_chunk,
)
from distrain_nb.worker.reduction.sums import Sums


class Credit:
    """Counts of chunks, of each member from its first on: `granted`, `announced` by headers, and
    `received`.

    Half a port is shared out evenly for good, so that whoever begins may do so at once. The other
    half is for those who are sending: one who is first at an exchange may have all of it, and be a
    window ahead of the sums before the last comes.
    """

    def __init__(self, members: int) -> None:
        self._first = first_credit(members)
        self._spare = max(0, PORT_BYTES // largest_chunk(members) - members * self._first)
        self._used = 0  # of what is to spare
        self._sending = 0  # members
        self.granted = [self._first] * members
        self.announced = [0] * members
        self.received = [0] * members

    def announce(self, member: int, chunks: int) -> None:
        """Note that so many chunks more are to come."""
        self._sending += self.announced[member] == self.received[member]
        self.announced[member] += chunks

    def receive(self, member: int) -> None:
        """Count the next chunk of a member as received."""
        self._used -= self._extra(member)
        self.received[member] += 1
        self._used += self._extra(member)
        self._sending -= self.announced[member] == self.received[member]

    def grant(self, member: int, summed: int) -> int:
        """Return up to which chunk this member may send, now that so many have been summed."""
        more = self._more(member, summed)
        self._used -= self._extra(member)
        self.granted[member] += more
        self._used += self._extra(member)
        return self.granted[member]

    def is_due(self, member: int, summed: int) -> bool:
        """Return whether what may be granted is worth a message of its own, as it is no less than
        what is left: a sum may bring it soon."""
        unused = self.granted[member] - self.received[member]
        return self._more(member, summed) >= max(1, unused)

    def _more(self, member: int, summed: int) -> int:
        received, announced = self.received[member], self.announced[member]
        until = received + self._first
        if announced > until:
            free = self._spare - self._used + self._extra(member)
            until = min(announced, until + min(free, self._spare // self._sending))
        return max(0, min(until, summed + WINDOW) - self.granted[member])

    def _extra(self, member: int) -> int:
        """Return the chunks that a member may still send, beyond the first ones."""
        return max(0, self.granted[member] - self.received[member] - self._first)


_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE
# At once from one connection, so that the others get their turn.
READS = 4
# Pieces that are sent at once.
AT_ONCE = 16
_SCRAP = bytearray(1 << 16)
_NOTHING = memoryview(b"")


class Chunk(NamedTuple):
    """A chunk of a sum: every member has to send the same part, with as many bytes."""

    header: Header
    size: int


class Outgoing(NamedTuple):
    """A piece of what is to be sent; the last one of a sum says so."""

    memory: memoryview
    ends_sum: bool = False


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
        self._buffer = next(self._steps)
        self._out: Deque[Outgoing] = deque()
        self._group: Optional[Group] = None
        self.chunks: Deque[Chunk] = deque()
        self.sent = self.bytes_in = self.bytes_out = 0
        self.gone = self._deaf = False
        self.trouble = ""  # which is not the worker's
        selector.register(connected, _READ, self.turn)

    @property
    def greeted(self) -> bool:
        """Whether it has said which member of which group it is."""
        return self._group is not None

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
        except Exception as error:  # whoever connects may send anything, and harms only itself
            self.trouble = f"{type(error).__name__}: {error}"
            self.leave()
        if self._group:
            self._group.go_on()

    def _read(self) -> None:
        for _ in range(READS):
            try:
                count = self._socket.recv_into(_SCRAP if self._deaf else self._buffer)
            except BlockingIOError:
                return
            if not count:
                self.leave()
                return
            self.bytes_in += count
            if not self._deaf:
                self._buffer = self._buffer[count:]
                if not self._buffer:
                    self._buffer = next(self._steps)

    def _listen(self) -> Iterator[memoryview]:
        """Yield the places of all that this worker sends, each to be filled before the next is
        asked for. Raises Garbled."""
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
            raise Garbled("more than a question")
        group.join(greeting.member, self)
        self._group = group
        raw = bytearray(protocol.HEADER_BYTES)
        while True:
            yield memoryview(raw)
            header = Header.decode(bytes(raw))
            count = protocol.chunk_count(header.size, len(group.ranks))
            group.credit.announce(greeting.member, count)
            for size in protocol.chunks(header.size, len(group.ranks)):
                number = group.credit.received[greeting.member]
                if number - group.sums.number > WINDOW:
                    raise Garbled("more than was asked for")
                yield group.sums.place(greeting.member, number, size)
                group.take(greeting.member, Chunk(header, size))

    def send(self, kind: int, payload: memoryview = _NOTHING, credit: int = 0) -> None:
        """Have it sent with the next `flush`."""
        if self.gone:
            return
        self._out.append(Outgoing(memoryview(FRAME.pack(kind, len(payload), credit))))
        if payload:
            self._out.append(Outgoing(payload, ends_sum=kind == protocol.SUM))

    def flush(self) -> None:
        """Send as much as the system takes now, and the rest when it takes it."""
        if self._out and self._events == _READ:
            try:
                self._flush()
            except OSError:
                self.leave()

    def _flush(self) -> None:
        while self._out:
            try:
                pieces = [piece.memory for piece in islice(self._out, AT_ONCE)]
                count = self._socket.sendmsg(pieces)
            except BlockingIOError:
                break
            self.bytes_out += count
            while self._out and count >= len(self._out[0].memory):
                piece = self._out.popleft()
                count -= len(piece.memory)
                self.sent += piece.ends_sum
            if count:
                rest = self._out[0]
                self._out[0] = rest._replace(memory=rest.memory[count:])
        events = _BOTH if self._out else _READ
        if events != self._events:
            self._events = events
            self._selector.modify(self._socket, events, self.turn)

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
            if self._group:
                self._group.lost = True


class Group:
    """The members of one process group, in the order of their ranks, None before one connects."""

    def __init__(self, ranks: Any) -> None:
        self.ranks: List[int] = list(ranks)
        self.members: List[Optional[Connection]] = [None] * len(self.ranks)
        self.sums = Sums(len(self.ranks))
        self.credit = Credit(len(self.ranks))
        self.lost = False  # whether some have left
        self._ready = 0  # members that have a chunk here
        self._failed = ""

    def join(self, index: int, connection: Connection) -> None:
        if self.members[index] is not None:
            connection.refuse(f"rank {self.ranks[index]} has connected twice")
            return
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

    def take(self, index: int, chunk: Chunk) -> None:
        """Take the next chunk of a member, and sum what is complete."""
        member = self.members[index]
        assert member is not None
        self._ready += not member.chunks
        member.chunks.append(chunk)
        self.credit.receive(index)
        self.go_on()

    def grant(self) -> None:
        """Give members credit to send on, if no sum has brought it to them."""
        for index, member in enumerate(self.members):
            if member is not None and self.credit.is_due(index, self.sums.number):
                until = self.credit.grant(index, self.sums.number)
                member.send(protocol.CREDIT, credit=until)

    def go_on(self) -> None:
        """Sum all chunks that every member has sent, as far as the slowest takes the sums."""
        while not self._failed and self._ready == len(self.ranks):
            members = [member for member in self.members if member is not None]
            if self._is_full(members):
                for member in members:
                    member.flush()
                if self._is_full(members):
                    return
            self._sum(members)
        if self.lost and not self._failed:
            self._look_for_the_lost()

    def _is_full(self, members: List[Connection]) -> bool:
        """Return whether the slowest hasn't been sent the sums whose places are wanted."""
        slowest = min((m.sent for m in members if not m.gone), default=self.sums.number)
        return self.sums.number - slowest >= WINDOW

    def _sum(self, members: List[Connection]) -> None:
        chunks = [member.chunks.popleft() for member in members]
        self._ready = sum(bool(member.chunks) for member in members)
        chunk = chunks[0]
        for rank, chunk_of_rank in zip(self.ranks, chunks):
            if chunk_of_rank != chunk:
                self._fail(
                    f"the ranks differ: rank {self.ranks[0]} wants {chunk.header}, and "
                    f"rank {rank} {chunk_of_rank.header}"
                )
                return
        result = self.sums.next(chunk.header.dtype, chunk.header.mean, chunk.size)
        for index, member in enumerate(members):
            member.send(protocol.SUM, result, self.credit.grant(index, self.sums.number))

    def _look_for_the_lost(self) -> None:
        """Fail if a member is waited for that will not come."""
        waiting = [member for member in self.members if member is not None and member.chunks]
        for rank, member in zip(self.ranks, self.members):
            if waiting and member is not None and member.gone and not member.chunks:
                self._fail(f"rank {rank} has left before {waiting[0].chunks[0].header}")
                return

    def _fail(self, why: str) -> None:
        self._failed = why
        for member in self.members:
            if member is not None:
                member.refuse(why)

    def missing(self) -> List[int]:
        """Return the ranks that others wait for."""
        arrived = {
            rank for rank, member in zip(self.ranks, self.members) if member and member.chunks
        }
        return [rank for rank in self.ranks if rank not in arrived] if arrived else []
