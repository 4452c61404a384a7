"""A token server for distribution's `token` authentication.

It insists on a login, and for a push on both scopes in one request; its tokens last as long as
the test says.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID

from .registries import PASSWORD, USER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REFRESH_TOKEN = "a-refresh-token-of-ada"
# docker-registry takes a token for this long after it has expired.
_LEEWAY_S = 60


@dataclass
class TokenServer:
    """`life` is how many seconds the registry takes a token; `says` what the answer says."""

    life: float = 300.0
    says: float | None = 300.0
    scopes: int = 2
    address: str = ""
    requests: list[tuple[str, ...]] = field(default_factory=list)


@contextlib.contextmanager
def token_server(folder: Path, tokens: TokenServer) -> Iterator[dict[str, Any]]:
    """Run the server; gives the `auth` settings for a registry that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(tokens, key, certificate))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    tokens.address = f"127.0.0.1:{server.server_address[1]}"
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / "roots.pem"
    bundle.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    try:
        yield {
            "token": {
                "realm": f"http://{tokens.address}/token",
                "service": "tests",
                "issuer": "tests",
                "rootcertbundle": str(bundle),
            }
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(
    tokens: TokenServer, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            query = parse_qs(urlsplit(self.path).query)
            known = self.headers.get("Authorization") == f"Basic {basic}"
            self._grant(known, query.get("scope", []))

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            known = form.get("refresh_token") == [REFRESH_TOKEN]
            self._grant(known, form.get("scope", [""])[0].split())

        def _grant(self, known: bool, scopes: list[str]) -> None:
            tokens.requests.append(tuple(scopes))
            if not known:
                self._answer(401, {"details": "unknown user"})
            elif len(scopes) != tokens.scopes:
                self._answer(400, {"details": f"{tokens.scopes} scopes, please"})
            else:
                said = {} if tokens.says is None else {"expires_in": tokens.says}
                token = _token(scopes, tokens.life, key, certificate)
                self._answer(200, {"token": token, **said})

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _token(
    scopes: list[str],
    life: float,
    key: ec.EllipticCurvePrivateKey,
    certificate: x509.Certificate,
) -> str:
    now = time.time()
    chain = [base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()]
    claims = {
        "iss": "tests",
        "sub": USER,
        "aud": "tests",
        "iat": int(now),
        "nbf": int(now) - 120,
        "exp": int(now + life - _LEEWAY_S),
        "jti": "1",
        "access": [_access(scope) for scope in scopes],
    }
    body = f"{_encoded({'typ': 'JWT', 'alg': 'ES256', 'x5c': chain})}.{_encoded(claims)}"
    r, s = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{body}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _access(scope: str) -> dict[str, Any]:
    kind, name, actions = scope.split(":")
    return {"type": kind, "name": name, "actions": actions.split(",")}


def _encoded(document: dict[str, Any]) -> str:
    return _base64(json.dumps(document).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
