"""The order of messages of a page: they are taken in the order in which they were sent.

JupyterLab sends what concerns a widget by the kernel's shell until the subshell that it has asked
for is there. Then two threads take messages side by side, and a later one may come first.
"""

from __future__ import annotations

import time
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# What has not come by then is lost, or stands behind a cell that computes.
LOST_AFTER_S = 3.0


class PageOrder:
    """Calls `take` with messages that have a `page` and a `number`, from 1 in each page.

    One that comes before those that were sent before it waits for them until another one comes
    after `LOST_AFTER_S`. What comes later still has been overtaken, and is left out.
    """

    def __init__(self, take: Callable[[Mapping[str, Any]], object]) -> None:
        self._take = take
        self._lock = RLock()
        self._taken: dict[str, int] = {}
        self._early: dict[str, dict[int, tuple[float, Mapping[str, Any]]]] = {}

    def put(self, message: Mapping[str, Any]) -> bool:
        """Take a message and those that waited for it, or keep it until its turn; return False for
        one whose turn is over, as a page sends again what it has no answer to."""
        page, number = message["page"], message["number"]
        with self._lock:
            if number <= self._taken.get(page, 0):
                return False
            early = self._early.setdefault(page, {})
            early.setdefault(number, (time.monotonic(), message))  # it may be sent again
            while early and self._is_due(page, early):
                self._taken[page] = min(early)
                self._take(early.pop(self._taken[page])[1])
            return True

    def last(self, page: str) -> int:
        """Return the number of the last message that has been taken from a page."""
        return self._taken.get(page, 0)

    def _is_due(self, page: str, early: Mapping[int, tuple[float, Mapping[str, Any]]]) -> bool:
        """Return whether the first of them is the next, or has waited long enough."""
        if min(early) == self._taken.get(page, 0) + 1:
            return True
        return time.monotonic() - min(came for came, _ in early.values()) > LOST_AFTER_S
