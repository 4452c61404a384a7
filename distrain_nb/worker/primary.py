"""Whether the primary, on another host, still works: parameter servers have no end of their own."""

from __future__ import annotations

import socket
import time

LOOK_EVERY_S = 0.5
ANSWER_WITHIN_S = 2.0
MISSED_AT_MOST = 2


class Primary:
    """Watches an address, `host:port`, that is open for as long as the primary works."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._seen = False
        self._missed = 0
        self._look_at = 0.0

    def has_ended(self) -> bool:
        """True once it was there and has been gone for more than a moment."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look()
            self._look_at = now + LOOK_EVERY_S
        return self._missed > MISSED_AT_MOST

    def _look(self) -> None:
        try:
            socket.create_connection(self._address, timeout=ANSWER_WITHIN_S).close()
        except OSError:
            self._missed += self._seen
        else:
            self._seen, self._missed = True, 0
