"""Messages as webhooks and mail servers get them, and why one could not be sent."""

from __future__ import annotations

import json
import signal
import smtplib
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any

from distrain_nb.certificates import unverified
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.tracking.credentials import SECRET_VARIABLES, is_web_address, secret

CHANNELS = ("webhook", "mail")
WITHIN_S = 15.0
_SLACK = "hooks.slack.com"
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Message:
    """A notice as it is sent: `event` is `end` or `hang`; `verb` of `%distrain` shows the `noun` of
    that number."""

    event: str
    title: str
    text: str
    number: int
    name: str
    state: str
    noun: str = "run"
    verb: str = "show"

    def as_json(self, *, slack: bool) -> bytes:
        """Return what a webhook gets. Slack's own takes a text alone, in which it reads `<…>`."""
        text = "\n".join(filter(None, (self.title, self.text)))
        if slack:
            escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            return json.dumps({"text": escaped}).encode()
        about = {self.noun: self.number, "name": self.name, "state": self.state}
        return json.dumps({"event": self.event, "text": text, **about}).encode()

    def as_mail(self, to: str, sender: str) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = " ".join(self.title.split())
        mail["From"], mail["To"] = sender, to
        mail.set_content(
            f"{self.text or self.title}\n\n`%distrain {self.verb} {self.number}` shows it.\n"
        )
        return mail


def channels(text: str, config: Config) -> tuple[str, ...]:
    """Return where to tell of a run: `text` is its option; empty, the setting counts.

    Raises OptionError for a channel that there isn't, or that isn't set up.
    """
    names = [name.strip() for name in (text or config.notify).split(",") if name.strip()]
    if names == ["none"]:
        return ()
    for name in names:
        if name not in CHANNELS:
            expected = f"expected none, {' or '.join(CHANNELS)}, or both with a comma"
            raise OptionError(f"invalid --notify {text or config.notify!r}: {expected}")
        lacking = _lacking(name, config)
        if lacking:
            raise OptionError(f"--notify {name}: {lacking}")
    return tuple(dict.fromkeys(names))


def _lacking(channel: str, config: Config) -> str:
    if channel == "webhook":
        variable = SECRET_VARIABLES["webhook"]
        asks = f"`%distrain config webhook` asks for its address, or set {variable}"
        address = secret("webhook")
        if address and not is_web_address(address):
            return f"the webhook is no address that begins with https://: {asks}"
        return "" if address else f"no webhook is set: {asks}"
    names = [name for name in ("smtp", "mail") if not getattr(config, name)]
    how = "`%distrain config smtp=smtp://USER@HOST:587 mail=NAME@HOST` sets both"
    return f"{' and '.join(names)} not set: {how}" if names else ""


def attempt(send: Callable[[Message], None], message: Message, wait: float = 0.0) -> str:
    """Send it, within 15 s; return why that failed, without an address, or nothing."""
    time.sleep(wait)
    try:
        with _limited(WITHIN_S):
            send(message)
    except Exception as error:
        return _reason(error)
    return ""


def _reason(error: BaseException) -> str:
    """Say what kept a message from being sent; an error's own text may have the address."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code}"
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        return _reason(error.reason)
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"the server refused the login ({error.smtp_code})"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the server answered {error.smtp_code}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = ", ".join(str(code) for code, _ in error.recipients.values())
        return f"the server refused the recipient ({codes})"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return unverified(error)
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "the server doesn't speak TLS at this port"
    return f"{type(error).__name__}: {getattr(error, 'strerror', None) or 'no answer'}"


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block after so many seconds, whatever it waits for."""

    def end(*_: Any) -> None:
        raise TimeoutError

    # A socket's timeout is for each read: a server that sends a byte now and then would keep us.
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: a POST would become a GET, and go to somebody else."""


def post(url: str, message: Message) -> None:
    """Send it to a webhook. Raises what urllib raises."""
    slack = urllib.parse.urlsplit(url).hostname == _SLACK
    headers = {"Content-Type": "application/json", "User-Agent": "distrain-nb"}
    request = urllib.request.Request(url, message.as_json(slack=slack), headers)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=WITHIN_S):
        pass


def mail(config: Config, password: str, message: Message) -> None:
    """Send it by SMTP. A password goes by TLS alone, unless the server is this machine. Raises what
    smtplib raises."""
    server = urllib.parse.urlsplit(config.smtp)
    host, user = server.hostname or "", urllib.parse.unquote(server.username or "")
    if server.scheme == "smtps":
        client: smtplib.SMTP = smtplib.SMTP_SSL(
            host, server.port or 465, timeout=WITHIN_S, context=ssl.create_default_context()
        )
    else:
        client = smtplib.SMTP(host, server.port or 587, timeout=WITHIN_S)
    with client:
        client.ehlo()
        if server.scheme == "smtp" and client.has_extn("starttls"):
            client.starttls(context=ssl.create_default_context())
            client.ehlo()
        elif server.scheme == "smtp" and user and host not in _THIS_MACHINE:
            why = "the server has no STARTTLS, so the password isn't sent"
            raise smtplib.SMTPNotSupportedError(why)
        if user:
            client.login(user, password)
        sender = user if "@" in user else config.mail.partition(",")[0]
        client.send_message(message.as_mail(config.mail, sender))


def senders(names: list[str], config: Config) -> dict[str, Callable[[Message], None]]:
    """Return how to send by each channel."""
    makers: dict[str, Callable[[Message], None]] = {
        "webhook": lambda message: post(secret("webhook"), message),
        "mail": lambda message: mail(config, secret("smtp_password"), message),
    }
    return {name: makers[name] for name in names}
