"""Ports for services that stop and start again."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A free one that no program is given for the asking, so that it stays free while the server
    is down."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
