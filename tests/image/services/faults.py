"""A proxy in front of a registry that breaks the requests it is told to break."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PIECE = 1 << 14


@dataclass
class Fault:
    """What happens to the first `times` requests whose `METHOD PATH` matches.

    `status` answers at once; `cut_request` and `cut_answer` close the connection after so many
    bytes of the body; `damage_request` and `damage_answer` change a byte; `pause` is in seconds
    before each piece; `no_login` takes the authorization away, `no_mount` the wish to mount.
    """

    matches: str
    times: int = 1
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_request: int | None = None
    cut_answer: int | None = None
    damage_request: bool = False
    damage_answer: bool = False
    pause: float = 0.0
    no_login: bool = False
    no_mount: bool = False


@dataclass(frozen=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body_size: int


class Proxy:
    """Where the proxy listens, what it breaks and what it has seen."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.host = ""
        self._lock = threading.Lock()

    def fault_for(self, method: str, path: str) -> Fault:
        with self._lock:
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.matches, f"{method} {path}"):
                    fault.times -= 1
                    return fault
        return Fault("")

    def count(self, pattern: str) -> int:
        return sum(1 for x in self.seen if re.search(pattern, f"{x.method} {x.path}"))


@contextlib.contextmanager
def faulty(upstream: str, *faults: Fault) -> Iterator[Proxy]:
    """A proxy for the registry `upstream` (`host:port`) that lives as long as the block."""
    proxy = Proxy(upstream)
    proxy.faults.extend(faults)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
    server.daemon_threads = True
    proxy.host = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Cut(Exception):
    pass


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def relay(self) -> None:
        fault = self.proxy.fault_for(self.command, self.path)
        size = int(self.headers.get("Content-Length") or 0)
        self.proxy.seen.append(Seen(self.command, self.path, dict(self.headers), size))
        try:
            if fault.status:
                self._answer_at_once(fault, size)
            else:
                self._pass_on(fault, size)
        except (_Cut, OSError, http.client.HTTPException):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = relay  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass

    def _answer_at_once(self, fault: Fault, size: int) -> None:
        while size > 0:
            piece = self.rfile.read(min(size, _PIECE))
            if not piece:
                raise _Cut
            size -= len(piece)
        self.send_response(fault.status)
        for name, value in {**fault.headers, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _pass_on(self, fault: Fault, size: int) -> None:
        upstream = http.client.HTTPConnection(self.proxy.upstream, timeout=60)
        try:
            self._send_up(upstream, fault, size)
            self._send_down(upstream.getresponse(), fault)
        finally:
            upstream.close()

    def _send_up(self, upstream: http.client.HTTPConnection, fault: Fault, size: int) -> None:
        path = re.sub(r"\?mount=.*", "", self.path) if fault.no_mount else self.path
        upstream.putrequest(self.command, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if not (fault.no_login and name.lower() == "authorization"):
                upstream.putheader(name, value)
        upstream.endheaders()
        done = 0
        while done < size:
            if fault.cut_request is not None and done >= fault.cut_request:
                raise _Cut
            time.sleep(fault.pause)
            piece = self.rfile.read(min(size - done, _PIECE))
            if not piece:
                raise _Cut
            upstream.send(_damaged(piece) if fault.damage_request and not done else piece)
            done += len(piece)

    def _send_down(self, answer: http.client.HTTPResponse, fault: Fault) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "date", "server"):
                self.send_header(name, value)
        self.end_headers()
        done = 0
        while piece := answer.read(_PIECE):
            time.sleep(fault.pause)
            if fault.cut_answer is not None and done >= fault.cut_answer:
                raise _Cut
            self.wfile.write(_damaged(piece) if fault.damage_answer and not done else piece)
            done += len(piece)


def _damaged(piece: bytes) -> bytes:
    return bytes([piece[0] ^ 1]) + piece[1:]
