"""A mail server as far as smtplib goes, with or without TLS, and an authority for its
certificates."""

from __future__ import annotations

import datetime
import ipaddress
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates; `path` is the file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        self.path = folder / "authority.pem"
        own = self._certificate(self._name, self._key.public_key(), 0, self._key)
        self.path.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def context(
        self, address: str = "127.0.0.1", *, since: int = -1, self_signed: bool = False
    ) -> ssl.SSLContext:
        """Return what a server at that address needs; its certificate holds for two days, from so
        many days after now."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = self._name
        if self_signed:
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        signer = key if self_signed else self._key
        certificate = self._certificate(name, key.public_key(), since, signer, address)
        path = self._folder / "server.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _certificate(
        self,
        issuer: x509.Name,
        key: ec.EllipticCurvePublicKey,
        since: int,
        signer: ec.EllipticCurvePrivateKey,
        address: str = "",
    ) -> x509.Certificate:
        begin = datetime.datetime.now(datetime.timezone.utc) + since * DAY
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject if address else issuer)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + 2 * DAY)
            .add_extension(x509.BasicConstraints(ca=not address, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )
        if address:
            names = [x509.IPAddress(ipaddress.ip_address(address))]
            issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
            builder = builder.add_extension(issuer_key, critical=False)
        else:
            usage = {
                name: name in ("key_cert_sign", "crl_sign")
                for name in (
                    *("digital_signature", "content_commitment", "key_encipherment"),
                    *("data_encipherment", "key_agreement", "key_cert_sign", "crl_sign"),
                    *("encipher_only", "decipher_only"),
                )
            }
            builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
        return builder.sign(signer, hashes.SHA256())


@dataclass
class Mailbox:
    """What a server has got: `heard` are all verbs, those by TLS with a `*` before them."""

    tls: ssl.SSLContext | None = None
    wraps: bool = False
    answers: dict[str, str] = field(default_factory=dict)
    port: int = 0
    logins: list[str] = field(default_factory=list)
    mails: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)


class Smtp(socketserver.StreamRequestHandler):
    """RFC 5321 with STARTTLS and AUTH PLAIN."""

    def answer(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def secure(self, tls: ssl.SSLContext) -> None:
        """Go on by TLS. Raises OSError where the client doesn't."""
        self.request.settimeout(10)
        self.request = tls.wrap_socket(self.request, server_side=True)
        self.setup()

    def handle(self) -> None:
        box: Mailbox = self.server.box  # type: ignore[attr-defined]
        with suppress(OSError):
            if box.tls and box.wraps:
                self.secure(box.tls)
            self.talk(box)

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
            self.request.close()

    def talk(self, box: Mailbox) -> None:
        self.answer("220 here")
        while line := self.rfile.readline().decode().strip():
            verb = line.split()[0].upper()
            is_secure = isinstance(self.request, ssl.SSLSocket)
            box.heard.append("*" * is_secure + verb)
            if verb in box.answers:
                self.answer(box.answers[verb])
            elif verb == "EHLO":
                starts = box.tls and not is_secure
                self.answer(f"250-here\r\n{'250-STARTTLS' if starts else '250-8BITMIME'}")
                self.answer("250 AUTH PLAIN")
            elif verb == "STARTTLS" and box.tls:
                self.answer("220 go on")
                self.secure(box.tls)
            elif verb == "AUTH":
                box.logins.append(line)
                self.answer("235 welcome")
            elif verb == "DATA":
                self.answer("354 go on")
                lines: list[str] = []
                while (text := self.rfile.readline().decode()) != ".\r\n":
                    lines.append(text)
                box.mails.append("".join(lines))
                self.answer("250 taken")
            else:
                self.answer("221 bye" if verb == "QUIT" else "250 yes")


@contextmanager
def serving_mail(box: Mailbox, address: str = "127.0.0.1") -> Iterator[Mailbox]:
    """Serve until the block ends; `box.port` is where."""
    server = socketserver.ThreadingTCPServer((address, 0), Smtp)
    server.daemon_threads = True
    box.port = server.server_address[1]
    server.box = box  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield box
    finally:
        server.shutdown()
        server.server_close()
