"""A registry's login goes to that registry and to the token server that it names, to nobody else,
wherever the registry sends a request."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
import ssl
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from distrain_nb.image.progress import Meter
from distrain_nb.image.registry import auth
from distrain_nb.image.registry.auth import AuthenticationError
from distrain_nb.image.registry.client import Registry
from distrain_nb.image.registry.manifest import digest_of
from distrain_nb.image.registry.retry import RegistryError

from .services.strangers import Answer, Host, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.brief

LOGIN = "Basic " + base64.b64encode(b"ada:correct-horse").decode()
BLOB = b"a layer"
DIGEST = digest_of(BLOB)
PATH = f"/v2/team/job/blobs/{DIGEST}"
STRANGER = "127.0.0.2"
REFUSAL = Answer(401, {"WWW-Authenticate": 'Basic realm="r"'})


def logged_in(registry: str) -> None:
    folder = Path(os.environ["DOCKER_CONFIG"])
    folder.mkdir(exist_ok=True)
    entry = {"auth": LOGIN.partition(" ")[2]}
    (folder / "config.json").write_text(json.dumps({"auths": {registry: entry}}))


def read_blob(registry: Host) -> bytes:
    logged_in(registry.address)
    with closing(Registry(registry.address, ["repository:team/job:pull"])) as client:
        return client.small_blob("team/job", DIGEST)


def moved(to: Host) -> Answer:
    return Answer(307, {"Location": f"http://{to.address}/store/{DIGEST}?signature=1"})


def basic(_: str, login: str, then: Callable[[], Answer]) -> Answer:
    return then() if login == LOGIN else REFUSAL


def bearer(realm: str) -> Answer:
    return Answer(401, {"WWW-Authenticate": f'Bearer realm="{realm}",service="s"'})


def upload(to: Host) -> None:
    with closing(Registry(to.address, ["repository:team/job:push"])) as client:
        client.upload("team/job", _Blob(), Meter(None, ""))


@pytest.mark.parametrize("challenge", ["Bearer", "Basic"])
def test_a_storage_host_that_asks_for_a_login_gets_none(challenge: str) -> None:
    def ask(asked: str, login: str) -> Answer:
        if "/token" in asked:
            return Answer(200, {}, b'{"token": "of-the-stranger"}')
        realm = f'{challenge} realm="http://{storage.address}/token",service="s"'
        return Answer(401, {"WWW-Authenticate": realm})

    with (
        host(ask, STRANGER) as storage,
        host(lambda *_: moved(storage)) as registry,
        pytest.raises(AuthenticationError) as caught,
    ):
        read_blob(registry)
    assert storage.heard
    assert not storage.logins
    assert not registry.logins
    told = f"{storage.address}, to which {registry.address} redirects, doesn't allow it"
    assert told in str(caught.value)


def test_the_login_stays_behind_when_the_registry_sends_elsewhere() -> None:
    with (
        host(lambda *_: Answer(200, {}, BLOB), STRANGER) as storage,
        host(lambda *a: basic(*a, lambda: moved(storage))) as registry,
    ):
        assert read_blob(registry) == BLOB
    assert registry.logins == {LOGIN}
    assert not storage.logins


def test_another_port_of_the_same_host_is_another_host() -> None:
    with (
        host(lambda *_: REFUSAL) as storage,
        host(lambda *a: basic(*a, lambda: moved(storage))) as registry,
        pytest.raises(AuthenticationError),
    ):
        read_blob(registry)
    assert storage.heard
    assert not storage.logins


def test_an_upload_goes_on_elsewhere_without_the_login() -> None:
    with host(lambda *_: REFUSAL, STRANGER) as storage:
        begun = Answer(202, {"Location": f"http://{storage.address}/upload/1"})
        with host(lambda *a: basic(*a, lambda: begun)) as registry:
            logged_in(registry.address)
            with pytest.raises(AuthenticationError):
                upload(registry)
    assert storage.heard
    assert not storage.logins


def test_the_token_server_that_the_registry_names_gets_the_login() -> None:
    with host(lambda *_: Answer(200, {}, b'{"token": "t"}'), STRANGER) as tokens:
        refusal, good = bearer(f"http://{tokens.address}/token"), Answer(200, {}, BLOB)
        with host(lambda _, login: good if login == "Bearer t" else refusal) as registry:
            assert read_blob(registry) == BLOB
    assert tokens.logins == {LOGIN}
    assert registry.logins == {"Bearer t"}


def test_a_token_server_that_sends_elsewhere_is_not_followed() -> None:
    with (
        host(lambda *_: Answer(200, {}, b'{"token": "t"}'), STRANGER) as other,
        host(lambda *_: moved(other)) as tokens,
        host(lambda *_: bearer(f"http://{tokens.address}/token")) as registry,
        pytest.raises(AuthenticationError, match="answered 307"),
    ):
        read_blob(registry)
    assert not other.heard


@pytest.mark.parametrize("realm", ["", "nowhere", "http://[", "http://registry.example.com/token"])
def test_a_realm_that_gets_no_login(realm: str) -> None:
    with (
        host(lambda *_: bearer(realm)) as registry,
        pytest.raises(AuthenticationError, match=r"sends logins to .*expected an https"),
    ):
        read_blob(registry)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """A server's side of TLS on 0.0.0.0, which leads to this machine and isn't a loopback's name;
    clients trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    file = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(_certificate(key) + private)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    auth.encryption.cache_clear()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    yield context
    auth.encryption.cache_clear()


def _certificate(key: ec.EllipticCurvePrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.IPAddress(ipaddress.ip_address("0.0.0.0"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def test_a_registry_with_tls_can_not_send_the_login_to_a_port_of_this_machine(
    tls: ssl.SSLContext,
) -> None:
    with (
        host(lambda *_: Answer(200, {}, b'{"token": "t"}')) as listener,
        host(lambda *_: bearer(f"http://{listener.address}/token"), "0.0.0.0", tls) as registry,
        pytest.raises(AuthenticationError, match="expected an https address"),
    ):
        read_blob(registry)
    assert not listener.heard


def test_a_registry_with_tls_can_not_send_a_layer_away_without_it(tls: ssl.SSLContext) -> None:
    with host(lambda *_: Answer(201), STRANGER) as plain:
        begun = Answer(202, {"Location": f"http://{plain.address}/upload/1"})
        with (
            host(lambda *_: begun, "0.0.0.0", tls) as registry,
            pytest.raises(RegistryError, match="without encryption"),
        ):
            upload(registry)
    assert not plain.heard


class _Blob:
    digest, size = DIGEST, len(BLOB)

    def chunks(self) -> Iterator[bytes]:
        yield BLOB
