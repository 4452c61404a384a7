"""A rank that stays between cells."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional, Tuple

from distrain_nb.worker.supervisor.child import Child


class StayingChild(Child):
    """A rank that stays, with its channel.

    Each cell's supervisor takes it for a child.

    It is `alive` to the supervisor while a cell is at work in it. To end it is to stop the cell.
    """

    def __init__(self, pid: int, number: int, channel: socket.socket, outputs: Any) -> None:
        super().__init__(pid, {})
        self.number = number
        self.channel = channel
        self.outputs: List[Tuple[int, str]] = outputs
        self.alive = False
        self.is_busy = False  # with a cell, also one that was given up
        self.death = ""  # the reason of its end
        self.status = self.peak = 0  # of its end
        self.interrupted_at = 0.0
        self.answer: Optional[Dict[str, Any]] = None

    def order(self, word: Dict[str, Any]) -> None:
        with suppress(OSError):  # it has just ended, and is reaped soon
            self.channel.send(json.dumps(word).encode())

    def kill(self) -> None:
        """Give up the cell. The rank stays."""
        self.signalled, self.alive = True, False

    def terminate(self) -> None:
        """Interrupt the cell. The rank stays."""
        self.signalled = True
        self.interrupted_at = time.monotonic()
        for which in (
            signal.SIGINT,
            signal.SIGCONT,
        ):  # a halted process needs SIGCONT
            with suppress(ProcessLookupError):
                os.kill(self.pid, which)

    def close(self) -> None:
        self.channel.close()
        for descriptor, _ in self.outputs:
            with suppress(OSError):
                os.close(descriptor)
