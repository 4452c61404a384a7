"""Tells by a webhook or a mail that a run has ended, stands still or has passed a limit.

A process of its own follows the run's folder (`python -m distrain_nb.tracking.notify FOLDER
FILE CHANNEL…`), so that nothing waits for it, and kernel and page may be gone. Whoever knows
something worth telling adds it by `status.add_notice`. Each notice goes to each channel once. What
can't be sent is tried once more, and then said in the run's log.
"""

from __future__ import annotations

import json
import os
import signal
import smtplib
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.config import SECRET_VARIABLES, Config, secret
from distrain_nb.errors import OptionError
from distrain_nb.secrets import redacted
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import CARRIER_LOG, JOURNAL_FILE, LOG_FILE
from distrain_nb.worker.files.log import LineSplitter, LogWriter
from distrain_nb.worker.files.status import STANDS_STILL, Process, Status, notices_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CHANNELS = ("webhook", "mail")
PROCESS = "distrain_nb.tracking.notify"
PROCESS_LOG = "notify.log"  # text: what the process prints
LOOK_EVERY_S = 1.0
WITHIN_S, AGAIN_AFTER_S = 15.0, 3.0
LONGEST = 2000  # characters of a message
_SLACK = "hooks.slack.com"


@dataclass(frozen=True)
class Message:
    """A notice as it is sent: `event` is `end`, `hang`, or what `add_notice` calls it."""

    event: str
    title: str
    text: str
    run: int
    name: str
    state: str

    def as_json(self, *, slack: bool) -> bytes:
        """Return what a webhook gets. Slack's own takes a text alone, in which it reads `<…>`."""
        text = "\n".join(filter(None, (self.title, self.text)))
        if slack:
            escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            return json.dumps({"text": escaped}).encode()
        about = {"run": self.run, "name": self.name, "state": self.state}
        return json.dumps({"event": self.event, "text": text, **about}).encode()

    def as_mail(self, to: str, sender: str) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = " ".join(self.title.split())
        mail["From"], mail["To"] = sender, to
        mail.set_content(f"{self.text or self.title}\n\n`%distrain show {self.run}` shows it.\n")
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
        return "" if secret("webhook") else f"no webhook is set: {asks}"
    names = [name for name in ("smtp", "mail") if not getattr(config, name)]
    how = "`%distrain config smtp=smtp://USER@HOST:587 mail=NAME@HOST` sets both"
    return f"{' and '.join(names)} not set: {how}" if names else ""


def begin(folder: Path, about: str, names: tuple[str, ...]) -> None:
    """Have a process follow that run or study, which outlives this one. Raises OSError."""
    start_detached(["-m", PROCESS, str(folder), about, *names], folder / PROCESS_LOG)


class RunWatch:
    """One run or study, which the file `about` names, and what has been told of it."""

    def __init__(
        self, folder: Path, about: str, send: Mapping[str, Callable[[Message], None]]
    ) -> None:
        self._folder = folder
        self._about = folder / about
        self._send = send
        self._told = 0
        self._hung = False
        self._failures: dict[str, str] = {}

    def turn(self) -> bool:
        """Tell what is new; return whether the run goes on."""
        try:
            status = Status.current(self._folder)
        except FileNotFoundError:  # not begun yet, or deleted
            return self._folder.exists()
        except (OSError, fields.Damaged):
            return True
        for notice in notices_of(self._folder)[self._told :]:
            self._told += 1
            self._tell(notice.kind, notice.text, status)
        if status.note.startswith(STANDS_STILL) and not status.state.final:
            if not self._hung:
                self._tell("hang", status.note, status)
            self._hung = True
        else:
            self._hung = False
        if status.state.final:
            self._tell("end", status.error.strip().partition("\n")[0], status)
            self._say_failures()
        return not status.state.final

    def _tell(self, event: str, text: str, status: Status) -> None:
        message = message_of(self._about, event, text, status)
        for channel, send in self._send.items():
            failure = attempt(send, message) and attempt(send, message, AGAIN_AFTER_S)
            if failure:
                self._failures.setdefault(channel, f"{channel}: {failure}")

    def _say_failures(self) -> None:
        if self._failures:
            text = f"distrain: some notices could not be sent; {'; '.join(self._failures.values())}"
            with suppress(OSError):
                say(self._folder, text)


def message_of(about: Path, event: str, text: str, status: Status) -> Message:
    """Return the message about a run; without what looks like a secret."""
    record = {}
    with suppress(OSError, fields.Damaged):
        record = fields.load(about)
    number, name = int(record.get("id") or 0), str(record.get("name") or about.parent.name)
    state = str(status.state)
    words = {"end": state, "hang": "stands still"}.get(event, "has something to say")
    took = ""
    if event == "end" and state in status.times and record.get("created"):
        took = f" after {_duration(status.times[state] - float(record['created']))}"
    return Message(
        event, f"{name} #{number} {words}{took}", redacted(text)[:LONGEST], number, name, state
    )


def _duration(seconds: float) -> str:
    rounded = max(0, int(seconds))
    if rounded < 60:
        return f"{rounded} s"
    return (
        f"{rounded // 60} min"
        if rounded < 3600
        else f"{rounded // 3600} h {rounded % 3600 // 60:02d} min"
    )


def attempt(send: Callable[[Message], None], message: Message, wait: float = 0.0) -> str:
    """Send it, within 15 s; return why that failed, without an address, or nothing."""
    time.sleep(wait)
    try:
        with _limited(WITHIN_S):
            send(message)
    except urllib.error.HTTPError as error:
        return f"the server answered {error.code}"
    except smtplib.SMTPResponseException as error:
        return f"the server answered {error.smtp_code}"
    except urllib.error.URLError as error:
        return (
            f"{type(error.reason).__name__}: {getattr(error.reason, 'strerror', '') or 'no answer'}"
        )
    except Exception as error:  # its text may have the address
        return f"{type(error).__name__}: {getattr(error, 'strerror', None) or 'no answer'}"
    return ""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block after so many seconds, whatever it waits for."""

    def end(*_: Any) -> None:
        raise TimeoutError

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
        elif server.scheme == "smtp" and user and host not in ("localhost", "127.0.0.1", "::1"):
            raise smtplib.SMTPNotSupportedError("the server has no STARTTLS")
        if user:
            client.login(user, password)
        sender = user if "@" in user else config.mail.partition(",")[0]
        client.send_message(message.as_mail(config.mail, sender))


def say(folder: Path, text: str) -> None:
    """Have it in the log of a run that has ended: nobody else writes that any more. Raises
    OSError."""
    if (folder / JOURNAL_FILE).exists():  # whose log goes on where the journal says
        with (folder / CARRIER_LOG).open("a", encoding="utf-8") as log:
            log.write(f"{text}\n")
        return
    if not (folder / LOG_FILE).exists():  # a study
        print(text, flush=True)
        return
    status = Status.read(folder)
    service = next((p for p in status.processes if p.role == "service"), None)
    if service is None:
        service = Process(len(status.processes), "service", "service", 0)
        replace(status, processes=(*status.processes, service)).write(folder)
    log_writer = LogWriter(folder)
    log_writer.write(LineSplitter(service.index, "e").feed(f"{text}\n".encode()))
    log_writer.close()


def senders(names: list[str], config: Config) -> dict[str, Callable[[Message], None]]:
    """Return how to send by each channel."""
    makers: dict[str, Callable[[Message], None]] = {
        "webhook": lambda message: post(secret("webhook"), message),
        "mail": lambda message: mail(config, secret("smtp_password"), message),
    }
    return {name: makers[name] for name in names}


def main(folder: Path, about: str, names: list[str]) -> None:
    """Follow a run or a study to its end."""
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch = RunWatch(folder, about, senders(names, Config.load()))
    while watch.turn():
        time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
