"""A way for replicas to a port of this machine, and for clients to a socket."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

_CHUNK = 1 << 16


class Gateway:
    """Connects allowed clients of `listener` to the port or the socket of that path.

    Takes the listener over.
    """

    def __init__(
        self,
        listener: socket.socket,
        target: int | Path,
        allowed: Callable[[socket.socket], bool] = lambda _: True,
    ) -> None:
        self._listener = listener
        self._target = target
        self._allowed = allowed
        host, port = listener.getsockname()[:2]
        self.address = f"{host}:{port}"
        threading.Thread(target=self._run, name="gateway", daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # which is how it is closed
            while True:
                friend, _ = self._listener.accept()
                threading.Thread(target=self._join, args=(friend,), daemon=True).start()

    def _join(self, friend: socket.socket) -> None:
        with friend, contextlib.suppress(OSError):
            if not self._allowed(friend):
                return
            service = self._reached()
            back = threading.Thread(target=_pass_on, args=(service, friend), daemon=True)
            with service:
                back.start()
                _pass_on(friend, service)
                back.join()

    def _reached(self) -> socket.socket:
        if isinstance(self._target, int):
            return socket.create_connection(("127.0.0.1", self._target))
        service = socket.socket(socket.AF_UNIX)
        service.connect(str(self._target))
        return service

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
