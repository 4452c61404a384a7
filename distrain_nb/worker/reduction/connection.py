"""The connection of a worker to a reducer."""

from __future__ import annotations

import json
import selectors
import socket
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Callable, Deque, Iterator, NamedTuple, Optional

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.protocol import FRAME, WINDOW, Garbled, Greeting, Header

if TYPE_CHECKING:
    from distrain_nb.worker.reduction.members import Group

_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE
# Reads of one connection in a row: then the others get their turn.
READS = 4
# Pieces that one system call sends.
AT_ONCE = 16
_SCRAP = bytearray(1 << 16)  # takes what is ignored
_NOTHING = memoryview(b"")


class Chunk(NamedTuple):
    """A chunk of a sum. Every member has to send the same part, with as many bytes."""

    header: Header
    size: int


class Outgoing(NamedTuple):
    """A piece of memory to send. `ends_sum` marks the last piece of a sum."""

    memory: memoryview
    ends_sum: bool = False


class Connection:
    """A worker's connection.

    It sends a greeting, then its parts of one reduction after the other.
    """

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
        self.trouble = ""  # an error that is not the worker's
        selector.register(connected, _READ, self.turn)

    @property
    def greeted(self) -> bool:
        """Whether the worker has said which member of which group it is."""
        return self._group is not None

    def turn(self, events: int) -> None:
        """Read and write as far as the system allows now."""
        if self.gone:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._flush()
            if events & selectors.EVENT_READ and not self.gone:
                self._read()
        except (OSError, Garbled):
            self.leave()
        except Exception as error:  # any program may connect: it harms only itself
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
        """Yield memory for the next piece that the worker sends.

        Each is filled before the next is asked for. Raises Garbled.
        """
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
        """Queue a message for the next `flush`."""
        if self.gone:
            return
        self._out.append(Outgoing(memoryview(FRAME.pack(kind, len(payload), credit))))
        if payload:
            self._out.append(Outgoing(payload, ends_sum=kind == protocol.SUM))

    def flush(self) -> None:
        """Send as much as the system takes now. The selector sends the rest later."""
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
        """Tell the worker why nothing more is summed. Ignore everything that it still sends."""
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
