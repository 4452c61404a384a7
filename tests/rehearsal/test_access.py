"""Whose the other end of a connection is."""

from __future__ import annotations

import os
import socket

import pytest

from distrain_nb.rehearsal.access import is_allowed, is_ours
from tests.neighbour import as_neighbour

pytestmark = pytest.mark.brief

HOST = "127.0.0.1"


def connected(server: socket.socket, port: int = 0) -> socket.socket:
    """From that port of this machine, which other connections may have too."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.bind((HOST, port))
    client.connect(server.getsockname())
    return client


def test_another_user_may_have_the_same_port_to_somewhere_else() -> None:
    if os.geteuid():
        pytest.fail("needs root: it acts as a second user of this machine")
    servers = [socket.create_server((HOST, 0)) for _ in range(2)]
    ours = connected(servers[0])
    port = ours.getsockname()[1]
    here, there = socket.socketpair()

    def connect() -> None:
        with connected(servers[1], port) as client:
            socket.send_fds(there, [b"-"], [client.fileno()])

    assert as_neighbour(connect) == ""
    _, (theirs, *_), _, _ = socket.recv_fds(here, 1, 1)  # open as long as it is here
    answering = [server.accept()[0] for server in servers]
    assert [is_allowed(each) for each in answering] == [True, False]
    assert is_ours((HOST, port), servers[0].getsockname())
    assert not is_ours((HOST, port), servers[1].getsockname())
    os.close(theirs)
    ours.close()
    assert not is_ours((HOST, port), servers[0].getsockname())
