"""The reductions of a process group, which a thread of its own sends to the reducers."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from typing import Callable, Deque, List, Optional, Sequence, Set

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.link import Link, Lost, Reduction, ReductionError
from distrain_nb.worker.reduction.protocol import Greeting, Header

_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE
# A process's sockets close before its parent hears of its death, whose word should be the first.
DEATH_IS_SEEN_WITHIN_S = 0.5

Done = Callable[[Optional[ReductionError]], None]


class _Request(Reduction):
    def __init__(self, memory: memoryview, header: Header, deadline: float, done: Done) -> None:
        super().__init__(len(memory), deadline)
        self.memory, self.header, self.done = memory, header, done


class Exchange:
    """Reductions are done in the order in which they are asked for; every member of the group asks
    for the same ones. The thread begins with the first. After a failure all fail."""

    def __init__(self, addresses: Sequence[str], greeting: Greeting) -> None:
        self._links = [Link(f"reducer {n}", a, greeting) for n, a in enumerate(addresses)]
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._lock = threading.Lock()
        self._requests: Deque[_Request] = deque()
        self._done: Deque[_Request] = deque()
        self._going: Set[_Request] = set()
        self._number = 0
        self._closed = False
        self._failure: Optional[ReductionError] = None
        self._thread: Optional[threading.Thread] = None

    def reduce(
        self, memory: memoryview, dtype: str, mean: bool, timeout: float, done: Done
    ) -> None:
        """Have all members' bytes replaced by their sum or mean; `done` is called when they are,
        in the thread of the exchange, or with why they can't be. `timeout` is in seconds."""
        with self._lock:
            header = Header(self._number, dtype, mean, len(memory))
            self._number = (self._number + 1) & 0xFFFFFFFF
            request = _Request(memory, header, time.monotonic() + timeout, done)
            failure = self._failure
            if self._closed:
                failure = ReductionError("the process group has been destroyed")
            if failure is None:
                self._requests.append(request)
            if failure is None and self._thread is None:
                self._go_on_in_a_thread(self._run)
        if failure is not None:
            done(failure)
            return
        self.leave_thread()
        self._ring()

    def leave_thread(self) -> None:
        """Have another thread go on if this is the exchange's: what follows a reduction waits for
        one."""
        if threading.current_thread() is self._thread:
            self._go_on_in_a_thread(self._go_on)

    def _go_on_in_a_thread(self, part: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=part, name="reduction", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say goodbye; what is still under way fails."""
        with self._lock:
            self._closed = True
        self._ring()

    def _ring(self) -> None:
        try:
            self._wake.send(b"\0")
        except OSError:  # it has been rung often enough, or there is nobody any more
            pass

    def _run(self) -> None:
        self._guarded(self._connect)
        self._go_on()

    def _go_on(self) -> None:
        while self._failure is None and self._thread is threading.current_thread():
            if self._done:
                self._done.popleft().done(None)
            else:
                self._guarded(self._turn)

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            if self._closed:
                raise ReductionError("the process group has been destroyed")
            part()
        except ReductionError as error:
            self._fail(error)
        except BaseException as error:  # whoever waits must hear of it
            self._fail(ReductionError(f"{type(error).__name__}: {error}"))

    def _connect(self) -> None:
        self._selector.register(self._woken, _READ, None)
        with self._lock:
            until = self._requests[0].deadline
        for link in self._links:
            self._selector.register(link.connect(until), _READ, link)

    def _turn(self) -> None:
        deadline = min((request.deadline for request in self._going), default=None)
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            raise ReductionError(self._who_keeps_us_waiting())
        for key, events in self._selector.select(deadline and deadline - now):
            if key.data is None:
                self._take()
                continue
            if events & selectors.EVENT_READ:
                for reduction in key.data.receive():
                    self._finish(reduction)
            self._send(key.data)

    def _take(self) -> None:
        """Begin what has been asked for."""
        try:
            self._woken.recv(4096)
        except BlockingIOError:
            pass
        while self._requests:
            request = self._requests.popleft()
            self._going.add(request)
            header = request.header
            parts = protocol.parts(len(request.memory), len(self._links), header.sequence)
            for part in parts:
                part_header = header._replace(size=part.end - part.begin)
                memory = request.memory[part.begin : part.end]
                self._links[part.reducer].put(request, part_header, memory)
            for part in parts:
                self._send(self._links[part.reducer])

    def _send(self, link: Link) -> None:
        events = _BOTH if link.send() else _READ
        if self._selector.get_key(link.socket).events != events:  # type: ignore[arg-type]
            self._selector.modify(link.socket, events, link)  # type: ignore[arg-type]

    def _finish(self, reduction: Reduction) -> None:
        assert isinstance(reduction, _Request)
        self._going.discard(reduction)
        self._done.append(reduction)

    def _who_keeps_us_waiting(self) -> str:
        late = [link for link in self._links if link.waits]
        silent: List[str] = []
        ranks: Set[int] = set()
        for link in late:
            missing = link.missing()
            if missing is None:
                silent.append(link.name)
            else:
                ranks.update(missing)
        if silent:
            return f"{' and '.join(silent)} did not answer in time"
        names = ", ".join(f"rank {rank}" for rank in sorted(ranks)) or "the reducers' sums"
        return f"{names} did not come in time to {min(self._going, key=_order).header}"

    def _fail(self, error: ReductionError) -> None:
        if isinstance(error, Lost):
            time.sleep(DEATH_IS_SEEN_WITHIN_S)
        with self._lock:
            self._failure = error
            requests = [*self._done, *self._going, *self._requests]
        self._selector.close()
        self._woken.close()
        self._wake.close()
        for link in self._links:
            link.close()
        for request in requests:
            request.done(error if request.left else None)


def _order(request: _Request) -> int:
    return request.header.sequence
