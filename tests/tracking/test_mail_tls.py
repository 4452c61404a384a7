"""Mails by TLS, to a server whose certificate is trusted or not: no password goes astray."""

from __future__ import annotations

import base64
from email import message_from_string
from pathlib import Path

import pytest

from distrain_nb.config import Config
from distrain_nb.tracking import messages
from distrain_nb.tracking.credentials import keep_secret
from distrain_nb.tracking.messages import Message
from tests.tracking.hook import serving_hook
from tests.tracking.mail_server import Authority, Mailbox, serving_mail

MESSAGE = Message("end", "digits #7 failed", "ValueError: shapes", 7, "digits", "failed")
# Of this machine, but not by a name that may get a password without TLS.
ELSEWHERE = "127.0.0.2"


@pytest.fixture
def authority(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """One that is trusted, and a password."""
    keep_secret("smtp_password", "geheim-1")
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.path))
    return made


def sent(scheme: str, box: Mailbox, user: str = "me%40here.org@", host: str = ELSEWHERE) -> str:
    """Return why a mail could not be sent, or nothing."""
    with serving_mail(box, host):
        settings = Config(smtp=f"{scheme}://{user}{host}:{box.port}", mail="you@there.org")
        return messages.attempt(messages.senders(["mail"], settings)["mail"], MESSAGE)


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_mail_by_tls(scheme: str, authority: Authority) -> None:
    box = Mailbox(authority.context(ELSEWHERE), wraps=scheme == "smtps")
    assert sent(scheme, box) == ""
    (login,) = box.logins
    assert base64.b64decode(login.split()[-1]) == b"\0me@here.org\0geheim-1"
    assert message_from_string(box.mails[0])["To"] == "you@there.org"
    assert {"*AUTH", "*DATA"} <= set(box.heard)
    assert not {"AUTH", "DATA"} & set(box.heard)


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        ({"self_signed": True}, "it is self-signed; SSL_CERT_FILE can name a file with it"),
        ({"since": -9}, "it has expired"),
        ({"since": 9}, "it isn't valid yet"),
        ({"address": "127.0.0.9"}, "it is for another host"),
        ({}, "its issuer isn't trusted here; SSL_CERT_FILE can name a file with the issuer's"),
    ],
)
def test_no_password_to_a_server_that_is_not_trusted(
    scheme: str,
    certificate: dict[str, object],
    why: str,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not certificate:
        monkeypatch.delenv("SSL_CERT_FILE")
    context = authority.context(**{"address": ELSEWHERE, **certificate})  # type: ignore[arg-type]
    box = Mailbox(context, wraps=scheme == "smtps")
    assert sent(scheme, box) == f"the server's certificate can't be verified: {why}"
    assert not box.logins and not box.mails
    assert not {"AUTH", "DATA", "*AUTH", "*DATA"} & set(box.heard)


def test_no_password_to_a_server_without_starttls(authority: Authority) -> None:
    box = Mailbox()
    why = "the server has no STARTTLS, so the password isn't sent"
    assert sent("smtp", box) == why
    assert not box.logins and not box.mails
    assert sent("smtp", box, user="") == "", "without a password it is sent"
    assert sent("smtp", box, host="127.0.0.1") == "", "a password stays on this machine"
    assert (len(box.logins), len(box.mails)) == (1, 2)


def test_tls_where_the_server_has_none(authority: Authority) -> None:
    box = Mailbox()
    assert sent("smtps", box) == "the server doesn't speak TLS at this port"
    assert not box.logins


@pytest.mark.parametrize(
    ("verb", "answer", "why"),
    [
        ("AUTH", "535 geheim-1 is wrong", "the server refused the login (535)"),
        ("RCPT", "550 who is you@there.org", "the server refused the recipient (550)"),
        ("MAIL", "552 too much", "the server answered 552"),
        ("STARTTLS", "454 not now", "the server answered 454"),
    ],
)
def test_what_a_server_refuses(verb: str, answer: str, why: str, authority: Authority) -> None:
    box = Mailbox(authority.context(ELSEWHERE), answers={verb: answer})
    assert sent("smtp", box) == why
    assert not box.mails


def test_a_server_without_logins(authority: Authority) -> None:
    box = Mailbox(authority.context(ELSEWHERE), answers={"EHLO": "250-here\r\n250 STARTTLS"})
    assert sent("smtp", box) == "SMTP AUTH extension not supported by server."


@pytest.mark.parametrize(("address", "why"), [(ELSEWHERE, ""), ("127.0.0.9", "another host")])
def test_a_webhook_by_tls(address: str, why: str, authority: Authority) -> None:
    with serving_hook(authority.context(address), ELSEWHERE) as hook:
        failure = messages.attempt(lambda message: messages.post(hook.url, message), MESSAGE)
    expected = f"the server's certificate can't be verified: it is for {why}" if why else ""
    assert failure == expected
    assert bool(hook.got) == (not why)
