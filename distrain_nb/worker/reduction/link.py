"""A worker's connection to one reducer."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
import weakref
from collections import deque
from typing import Deque, List, NamedTuple, Optional

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.protocol import FRAME, Greeting, Header

ANSWERS_WITHIN_S = 5.0
RETRY_EVERY_S = 0.1
# Its host may come up later than this one.
THERE_WITHIN_S = 300.0


class ReductionError(RuntimeError):
    """A reduction can't be done: says which reducer or which rank is the reason."""


class Lost(ReductionError):
    """A connection has broken, or its reducer can't be reached."""


class Sending(NamedTuple):
    """A part of a reduction, whose sums take the place of what was sent."""

    reduction: Reduction
    header: Header
    memory: memoryview
    chunk: int
    number: int  # of its first chunk on this link


class Reduction:
    """One all-reduce under way: `left` bytes of it have not come back."""

    def __init__(self, size: int, deadline: float) -> None:
        self.left = size
        self.deadline = deadline


class Link:
    """Parts go out in the order in which they are put in, and come back so.

    Raises Lost, and ReductionError for what the reducer says.
    """

    def __init__(self, name: str, address: str, greeting: Greeting) -> None:
        self.name = f"{name} ({address})"
        self._address = protocol.split_address(address)
        self._greeting = greeting
        self.socket: Optional[socket.socket] = None
        self._out: Deque[Sending] = deque()
        self._back: Deque[Sending] = deque()
        self._position = 0  # in the first of `_out`, its header counted
        self._chunks = self._came = 0  # put in, and come back
        self._credit = protocol.first_credit(len(greeting.ranks))
        self._frame = memoryview(bytearray(FRAME.size))
        self._unread = self._frame
        self._payload: Optional[memoryview] = None
        self._words: Optional[bytearray] = None

    @property
    def waits(self) -> bool:
        """Whether sums are still to come."""
        return bool(self._back)

    def connect(self, until: float) -> socket.socket:
        """Try until it is there, or the time has come."""
        until = min(until, time.monotonic() + THERE_WITHIN_S)
        while True:
            try:
                self.socket = socket.create_connection(self._address, ANSWERS_WITHIN_S)
                break
            except OSError as error:
                if time.monotonic() > until:
                    raise Lost(f"{self.name} can't be reached: {error}") from None
                time.sleep(RETRY_EVERY_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.socket.sendall(self._greeting.encode())
        self.socket.setblocking(False)
        _open.add(self)
        return self.socket

    def put(self, reduction: Reduction, header: Header, memory: memoryview) -> None:
        members = len(self._greeting.ranks)
        chunk = protocol.chunk_bytes(header.size, members)
        sending = Sending(reduction, header, memory, chunk, self._chunks)
        self._chunks += protocol.chunk_count(header.size, members)
        self._out.append(sending)
        self._back.append(sending)

    def send(self) -> bool:
        """Send what can be sent; whether more could be if the system took it."""
        while self._out:
            pieces = self._next()
            if not pieces:
                return False
            try:
                self._position += self._socket().sendmsg(pieces)
            except BlockingIOError:
                return True
            except OSError as error:
                raise self._lost(error) from None
            if self._position == protocol.HEADER_BYTES + self._out[0].header.size:
                self._out.popleft()
                self._position = 0
        return False

    def _next(self) -> List[memoryview]:
        """Return the bytes of the first message that credit lets go out."""
        sending = self._out[0]
        until = self._credit - sending.number
        end = min(len(sending.memory), until * sending.chunk)
        begin = self._position - protocol.HEADER_BYTES
        if begin >= 0:
            return [sending.memory[begin:end]] if end > begin else []
        header = memoryview(sending.header.encode())[self._position :]
        return [header, sending.memory[:end]] if end > 0 else []

    def receive(self) -> List[Reduction]:
        """Take the sums that have come; the reductions that are done."""
        done: List[Reduction] = []
        while True:
            try:
                count = self._socket().recv_into(self._unread)
            except BlockingIOError:
                return done
            except OSError as error:
                raise self._lost(error) from None
            if not count:
                raise self._lost()
            self._unread = self._unread[count:]
            if self._unread:
                continue
            if self._payload is None:
                self._unread = self._begin_payload()
            else:
                self._end_payload(done)
                if not self._back:  # nothing more can come
                    return done

    def _begin_payload(self) -> memoryview:
        """Return the buffer for what the frame announces; after mere credit, for the next frame."""
        kind, size, credit = FRAME.unpack(self._frame)
        self._credit = max(self._credit, credit)
        if kind == protocol.CREDIT:
            return self._frame
        if kind == protocol.FAILED:
            self._words = bytearray(size)
            self._payload = memoryview(self._words)
        elif not self._back:
            raise self._lost()
        else:
            sending = self._back[0]
            begin = (self._came - sending.number) * sending.chunk
            self._payload = sending.memory[begin : begin + size]
        return self._payload

    def _end_payload(self, done: List[Reduction]) -> None:
        if self._words is not None:
            raise ReductionError(f"{self.name} has stopped: {self._words.decode()}")
        assert self._payload is not None
        sending = self._back[0]
        self._came += 1
        sending.reduction.left -= len(self._payload)
        if (self._came - sending.number) * sending.chunk >= len(sending.memory):
            self._back.popleft()
        if not sending.reduction.left:
            done.append(sending.reduction)
        self._payload, self._unread = None, self._frame

    def _socket(self) -> socket.socket:
        assert self.socket is not None
        return self.socket

    def _lost(self, error: Optional[OSError] = None) -> Lost:
        return Lost(f"{self.name} {error or 'has closed the connection'}")

    def missing(self) -> Optional[List[int]]:
        """Return the ranks that the reducer waits for; None if it does not answer."""
        asking = self._greeting._replace(asks=True)
        try:
            with socket.create_connection(self._address, ANSWERS_WITHIN_S) as connection:
                connection.sendall(asking.encode())
                with connection.makefile("rb") as answer:
                    _, size, _ = FRAME.unpack(answer.read(FRAME.size))
                    return [int(rank) for rank in json.loads(answer.read(size))]
        except (OSError, ValueError, struct.error):
            return None

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()


# A process that this one forks would keep connections open that this one's end should close.
_open: weakref.WeakSet[Link] = weakref.WeakSet()


def _close_all() -> None:
    for link in list(_open):
        link.close()


os.register_at_fork(after_in_child=_close_all)
