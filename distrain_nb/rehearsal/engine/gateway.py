"""A way from a job's network to a port of this machine's loopback interface."""

from __future__ import annotations

import contextlib
import socket
import threading

_CHUNK = 1 << 16


class Gateway:
    """Whoever connects to `listener` speaks with the port. Takes the listener over."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener = listener
        self._port = port
        host, own = listener.getsockname()[:2]
        self.address = f"{host}:{own}"
        threading.Thread(target=self._run, name="gateway", daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # which is how it is closed
            while True:
                friend, _ = self._listener.accept()
                threading.Thread(target=self._join, args=(friend,), daemon=True).start()

    def _join(self, friend: socket.socket) -> None:
        with friend, contextlib.suppress(OSError):
            service = socket.create_connection(("127.0.0.1", self._port))
            back = threading.Thread(target=_pass_on, args=(service, friend), daemon=True)
            with service:
                back.start()
                _pass_on(friend, service)
                back.join()

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
