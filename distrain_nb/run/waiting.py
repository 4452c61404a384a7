"""Waiting for a run: here, by a future, in an event loop. One thread looks after all futures."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, ClassVar, Generic, cast

from distrain_nb.errors import RunCancelled, RunFailed, RunUnreadable, warn
from distrain_nb.escapes import plain
from distrain_nb.run.results import RETURNED
from distrain_nb.types import R, Value
from distrain_nb.worker.files.status import State, Status

if TYPE_CHECKING:
    from typing_extensions import Self

    from distrain_nb.run.results import Results

LOOK_EVERY_S = 0.05
_lock = threading.Lock()
_waiting: list[tuple[Waitable, Future[Value]]] = []


class Ends(ABC):
    """A run or a study: what ends some day."""

    noun: ClassVar[str] = "run"
    # The words for one that failed, before the report, and for one that somebody ended.
    failed_text: ClassVar[str] = "failed\n"
    cancelled_text: ClassVar[str] = "was cancelled"

    @property
    @abstractmethod
    def id(self) -> int: ...

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def status(self) -> Status: ...

    @property
    def title(self) -> str:
        """Its kind, number and name: `run 7 (digits)`."""
        return f"{self.noun} {self.id} ({self.name})"

    @property
    def state(self) -> State:
        return self.status.state

    @property
    def may_be_deleted(self) -> bool:
        """Whether it has ended, or can't be read, so that nobody can wait for its end."""
        try:
            return self.state.final
        except RunUnreadable:
            return True

    def ended_before(self, moment: float) -> bool:
        """Return whether it ended before that moment; one that can't be read is for its user to
        delete."""
        try:
            status = self.status
        except RunUnreadable:
            return False
        return status.state.final and status.times.get(str(status.state), moment) < moment

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until it has ended, `timeout` seconds at most; return itself.

        Raises RunFailed with the report, RunCancelled, or TimeoutError.
        """
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while not self.state.final:
            if time.monotonic() >= end:
                raise TimeoutError(f"{self.noun} {self.id} is {self.state} after {timeout:g} s")
            time.sleep(LOOK_EVERY_S)
        self.check()
        return self

    def check(self) -> None:
        """Raise RunFailed with the report, or RunCancelled, if it has ended so.

        Warns of a success that is none, such as of ranks that worked alone.
        """
        status = self.status
        if status.state is State.SUCCEEDED and status.warns:
            warning = status.note.removeprefix("warning: ")
            warn(f"{self.noun} {self.id}: {warning}")
        if status.state is State.FAILED:
            raise RunFailed(f"{self.title} {self.failed_text}{plain(status.error)}")
        if status.state is State.CANCELLED:
            why = f": {plain(status.error)}" if status.error else ""
            raise RunCancelled(f"{self.title} {self.cancelled_text}{why}")

    def unsuccessful(self) -> str:
        """Say in a line how it ended; empty for one that succeeded."""
        status = self.status
        if status.state is State.SUCCEEDED:
            return ""
        verb = "failed" if status.state is State.FAILED else "was cancelled"
        cause = plain(status.error).strip().partition("\n")[0].rstrip(".")
        return f"{self.noun} {self.id} {verb}{f': {cause}' if cause else ''}"


class Waitable(Ends, Generic[R]):
    """Something that has a result when it has ended; `R` is the type of the result."""

    @property
    @abstractmethod
    def results(self) -> Results: ...

    def done(self) -> bool:
        """Return whether it has ended, in whatever way. Raises RunUnreadable."""
        return self.state.final

    def result(self, timeout: float | None = None) -> R:
        """Wait for its end, `timeout` seconds at most, and give what the function returned on
        rank 0; for a cell, `results`.

        Raises RunFailed with the report, RunCancelled, TimeoutError, ValueError for what could
        not be saved, ResultUntrusted for what is more than plain data and came from a bucket
        (`results.trusted["result"]` reads it), and what `results` raises.
        """
        self.wait(timeout)
        results = self.results
        value: R = results[RETURNED] if RETURNED in results.named else cast("R", results)
        return value

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait for its end, `timeout` seconds at most; RunFailed or RunCancelled if it has ended
        so, else None. Raises TimeoutError."""
        try:
            self.wait(timeout)
        except (RunFailed, RunCancelled) as error:
            return error
        return None

    def future(self) -> Future[R]:
        """Return a future that has `result()` when the run has ended, for
        `concurrent.futures.as_completed` and `wait`. To cancel it leaves the run alone."""
        return _future_of(self)

    def __await__(self) -> Generator[object, None, R]:
        """Wait for `result()` and leave the event loop free. Cancelling the task that awaits leaves
        the run alone."""
        return asyncio.wrap_future(self.future()).__await__()


def _future_of(run: Waitable[R]) -> Future[R]:
    """Return a future that is running now, and has the run's result or exception when it has
    ended."""
    future: Future[R] = Future()
    future.set_running_or_notify_cancel()
    with _lock:
        _waiting.append((run, future))
        if len(_waiting) == 1:
            threading.Thread(target=_look, name="distrain futures", daemon=True).start()
    return future


def _look() -> None:
    """Look at runs until nothing waits for any. Callbacks may ask for futures, so none runs under
    the lock."""
    while True:
        with _lock:
            waiting = list(_waiting)
        settled = [future for run, future in waiting if _settle(run, future)]
        with _lock:
            _waiting[:] = [waiter for waiter in _waiting if waiter[1] not in settled]
            if not _waiting:
                return
        time.sleep(LOOK_EVERY_S)


def _settle(run: Waitable, future: Future[Value]) -> bool:
    """Return whether the run has ended; its future is complete then."""
    try:
        if not run.done():
            return False
        result = run.result()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    return True
