"""What PyTorch waits for: an all-reduce under way, or several works of a backend."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence

from distrain_nb.worker.reduction.link import ReductionError


class ReducedWork:
    """The work of `tensor`, whose elements are reduced in `flat`, which may be the same memory. It
    becomes a `Work` of PyTorch in a subclass of both. `future` is a new one."""

    def __init__(
        self, future: Any, tensor: Any, flat: Any, before_waiting: Callable[[], None]
    ) -> None:
        super().__init__()
        self._before_waiting = before_waiting
        self._tensor, self._flat = tensor, flat
        self._error: Optional[ReductionError] = None
        self._over = threading.Event()
        self._first = future
        # C++ sees that a future has failed only where it was to follow another one.
        self._future = self._first.then(self._outcome)

    def done(self, error: Optional[ReductionError]) -> None:
        """Wake whoever waits."""
        self._error = error
        if error is None and self._flat is not self._tensor:
            self._tensor.copy_(self._flat)
        self._over.set()
        self._first.set_result(None)

    def _outcome(self, _: Any = None) -> List[Any]:
        if self._error is not None:
            raise self._error
        return [self._tensor]

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Raise ReductionError; RuntimeError if `timeout` is more than 0 and has passed."""
        if not self._over.is_set():
            self._before_waiting()
        limit = timeout.total_seconds()
        if not self._over.wait(limit if limit > 0 else None):
            raise RuntimeError(f"the all-reduce was not done within {limit:g} s")
        self._outcome()
        return True

    def get_future(self) -> Any:
        return self._future

    def is_completed(self) -> bool:
        return self._over.is_set()

    def is_success(self) -> bool:
        return self._over.is_set() and self._error is None

    def exception(self) -> Optional[ReductionError]:
        return self._error

    def result(self) -> List[Any]:
        return self._outcome()

    def synchronize(self) -> None:
        self.wait()


class AllOfWork:
    """Done when all of some works are. It becomes a `Work` of PyTorch as `ReducedWork` does."""

    def __init__(self, works: Sequence[Any]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Raise what a work raises; `timeout` is that of each."""
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def synchronize(self) -> None:
        self.wait()
