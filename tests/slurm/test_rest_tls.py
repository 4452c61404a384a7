"""A real slurmrestd behind TLS, with a certificate of one's own authority, and behind a proxy."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import distrain_nb as d
from distrain_nb.backends import plugins
from distrain_nb.config import Config
from distrain_nb.errors import CheckFailed
from distrain_nb.places.slurm.commands import UnverifiedServer
from distrain_nb.places.slurm.rest import Rest
from tests.slurm.cluster import Cluster
from tests.slurm.test_rest import address, rest  # noqa: F401
from tests.tracking.mail_server import Authority

pytestmark = pytest.mark.slow


@dataclass
class Relay:
    """Passes bytes on to a port, by TLS if there is a context; as a proxy to whatever a client
    names, which it remembers."""

    port: int = 0
    tls: ssl.SSLContext | None = None
    heard: list[str] = field(default_factory=list)
    passed: bytes = b""

    def to(self, connection: socket.socket) -> socket.socket:
        if self.port:
            return socket.create_connection(("127.0.0.1", self.port))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        self.heard.append(head.decode())
        host, _, port = head.split()[1].decode().partition(":")
        there = socket.create_connection((host, int(port)))
        connection.sendall(b"HTTP/1.1 200 yes\r\n\r\n")
        return there


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        relay: Relay = self.server.relay  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            near = self.request
            near = relay.tls.wrap_socket(near, server_side=True) if relay.tls else near
            with near, relay.to(near) as far:
                back = threading.Thread(target=_pump, args=(far, near), daemon=True)
                back.start()
                while data := near.recv(65536):
                    relay.passed += data
                    far.sendall(data)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.close()


@contextlib.contextmanager
def relaying(relay: Relay) -> Iterator[str]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads, server.block_on_close = True, False
    server.relay = relay  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_job_by_https_behind_a_proxy(
    rest: Cluster,  # noqa: F811
    address: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = rest.token()
    monkeypatch.setenv("SLURM_JWT", token)
    for name in ("no_proxy", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    authority, port = Authority(tmp_path), urlsplit(address).port
    proxy, end = Relay(), Relay(port or 0, authority.context())
    with relaying(end) as secure, relaying(proxy) as through:
        url = f"https://{secure}"
        Config.load().changed("slurm_url", url, plugins.settings()).save()
        why = "its issuer isn't trusted here; SSL_CERT_FILE can name a file with the issuer's"
        with pytest.raises(CheckFailed, match=why):
            d.submit("1", on="slurm")
        assert end.passed == b"", "the token"
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
        monkeypatch.setenv("https_proxy", f"http://{through}")
        run = d.submit("print('hello')", on="slurm", workers=1, name="secure").wait()
        assert str(run.logs()) == "[rank 0] hello"
        assert token.encode() in end.passed and token.encode() not in proxy.passed
        assert {head.split("\r\n")[0] for head in proxy.heard} == {f"CONNECT {secure} HTTP/1.1"}
        assert token not in "".join(proxy.heard)
        monkeypatch.delenv("https_proxy")
        assert Rest(url).jobs()
    end.tls = authority.context("127.0.0.9")
    with relaying(end) as secure, pytest.raises(UnverifiedServer, match="it is for another host"):
        Rest(f"https://{secure}").jobs()
