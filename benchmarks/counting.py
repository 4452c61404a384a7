"""A way to a service by HTTP that counts what goes through: requests, and bytes each way."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_METHODS = (b"GET ", b"POST ", b"PUT ", b"DELETE ")


class Counting:
    """Connections to a port of this machine, each with a thread for each way."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = self.answered = self.posted = self.put = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Counting:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                asker, _ = self._listener.accept()
                answerer = socket.create_connection(("127.0.0.1", self._port))
                for way in ((asker, answerer, True), (answerer, asker, False)):
                    threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        """Pass on what comes. A request begins a piece: its sender waits for answers."""
        method = b""
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    if asks:
                        method = next((m for m in _METHODS if data.startswith(m)), b"") or method
                        self.requests += data.startswith(_METHODS)
                        self.posted += len(data) * (method == b"POST ")
                        self.put += len(data) * (method == b"PUT ")
                    else:
                        self.answered += len(data)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
