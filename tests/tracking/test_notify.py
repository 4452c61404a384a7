"""What a webhook and a mail server get of a run: by HTTP and SMTP of their own, once each."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from email import message_from_string
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb import api, config
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.magics import lines
from distrain_nb.tracking import messages, notify
from distrain_nb.tracking.credentials import keep_secret, secret
from distrain_nb.tracking.messages import Message
from distrain_nb.tracking.notify import RunWatch
from distrain_nb.worker.files.folder import LOG_FILE, RECORD_FILE
from distrain_nb.worker.files.status import Owner, State, Status
from tests.conftest import eventually
from tests.remote.folder_service import FolderBackend
from tests.tracking.hook import SECRET_PATH, serving_hook
from tests.tracking.mail_server import Mailbox, serving_mail

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def hook() -> Iterator[Any]:
    with serving_hook() as served:
        yield served


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with serving_mail(Mailbox()) as served:
        yield served


def run_folder(tmp_path: Path, state: State = State.RUNNING, **changes: object) -> Path:
    folder = tmp_path / "7"
    folder.mkdir(exist_ok=True)
    record = {"id": 7, "name": "digits", "created": time.time() - 125}
    (folder / RECORD_FILE).write_text(json.dumps(record))
    (folder / LOG_FILE).touch()
    put(folder, state, **changes)
    return folder


def put(folder: Path, state: State, **changes: object) -> None:
    import os

    begun = Status(state, supervisor=Owner.of(os.getpid()))
    replace(begun.enter(state), **changes).write(folder)  # type: ignore[arg-type]


def watch(folder: Path, hook: Any) -> RunWatch:
    return RunWatch(folder, {"webhook": lambda message: messages.post(hook.url, message)})


def test_each_is_told_once(tmp_path: Path, hook: Any) -> None:
    folder = run_folder(tmp_path)
    watched = watch(folder, hook)
    assert watched.turn() and watched.turn()
    assert not hook.got
    put(
        folder,
        State.RUNNING,
        note="it has made no progress for 44 s: rank 2 waits (Cell In[7], line 12)",
        hang="rank 2 waits (Cell In[7], line 12)",
    )
    assert watched.turn() and watched.turn()
    put(folder, State.FAILED, error="ValueError: shapes differ\nTraceback …")
    assert not watched.turn()
    sent = [body for _, body in hook.got]
    assert [body["event"] for body in sent] == ["hang", "end"]
    assert "line 12" in sent[0]["text"]
    assert sent[1]["text"] == "digits #7 failed after 2 min\nValueError: shapes differ"
    assert (sent[1]["run"], sent[1]["name"], sent[1]["state"]) == (7, "digits", "failed")


def test_it_is_tried_once_more_and_said_in_the_log(
    tmp_path: Path, hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "AGAIN_AFTER_S", 0.0)
    folder = run_folder(tmp_path, State.SUCCEEDED)
    hook.answers[:] = [500]
    watch(folder, hook).turn()
    assert len(hook.got) == 2
    assert not (folder / LOG_FILE).read_text()
    for answer in (404, 302):
        hook.answers[:] = [answer, answer]
        (folder / LOG_FILE).write_text("")
        put(folder, State.SUCCEEDED)
        watch(folder, hook).turn()
        log = (folder / LOG_FILE).read_text()
        assert log.count("\n") == 1
        assert f"could not be sent; webhook: the server answered {answer}" in log
        assert SECRET_PATH not in log
        assert Status.read(folder).processes[-1].role == "service"


def test_a_server_that_does_not_answer_delays_nothing_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setattr(messages, "WITHIN_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}{SECRET_PATH}"
        message = Message("end", "a", "b", 1, "a", "failed")
        said = messages.attempt(lambda message: messages.post(url, message), message)
    assert said.startswith("TimeoutError")
    assert SECRET_PATH not in said


def test_slack_gets_a_text() -> None:
    message = Message("end", "a #1 failed", "x < y & <!channel>", 1, "a", "failed")
    assert json.loads(message.as_json(slack=True)) == {
        "text": "a #1 failed\nx &lt; y &amp; &lt;!channel&gt;"
    }


@pytest.mark.parametrize(
    "text",
    [
        "denied: ghp_{}", "password={}", "refused Bearer {}", "https://ada:{}@db.corp.net/x",
        "posted with xoxb-730495182643-{}", "a value of the code: {}", "of a variable: {}",
    ],
)  # fmt: skip
def test_a_secret_is_not_sent(
    text: str, tmp_path: Path, hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
    folder = run_folder(tmp_path, State.FAILED, error=text.format(key))
    record = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
    record["name"] = f"run {text.format(key)}"
    (folder / RECORD_FILE).write_text(json.dumps(record), encoding="utf-8")
    (folder / "program").mkdir()
    if "code" in text:
        (folder / "program" / "main.py").write_text(f"db_password = '{key}'\n", encoding="utf-8")
    elif "variable" in text:
        monkeypatch.setenv("MY_API_KEY", key)
    watch(folder, hook).turn()
    assert hook.got and key not in json.dumps(hook.got)


def test_a_mail(box: Mailbox, home: Path) -> None:
    settings = Config(smtp=f"smtp://me%40here.org@127.0.0.1:{box.port}", mail="you@there.org")
    keep_secret("smtp_password", "geheim-1")
    message = Message("end", "größe #7 failed", "ValueError: shapes", 7, "größe", "failed")
    assert messages.attempt(messages.senders(["mail"], settings)["mail"], message) == ""
    parsed = message_from_string(box.mails[0])
    assert (parsed["To"], parsed["From"]) == ("you@there.org", "me@here.org")
    assert "%distrain show 7" in box.mails[0]
    assert len(box.logins) == 1
    assert "geheim" not in box.mails[0]


def test_secrets_are_kept_for_their_user_alone(home: Path) -> None:
    keep_secret("webhook", "https://hooks.slack.com/services/T0/B0/x")
    keep_secret("smtp_password", "geheim-1")
    path = config.home() / "secrets.json"
    assert path.stat().st_mode & 0o077 == 0
    assert (secret("webhook")[-2:], secret("smtp_password")) == ("/x", "geheim-1")
    keep_secret("smtp_password", "")
    assert secret("smtp_password") == ""
    Config().changed("notify", "mail", {}).save()
    assert "services" not in (config.home() / "config.yaml").read_text()
    with pytest.raises(OptionError, match="https") as refused:
        keep_secret("webhook", "http://example.org/geheim-2")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "settings", "reason"),
    [
        ("pager", {}, "expected none, webhook or mail"),
        ("webhook", {}, "no webhook is set: `%distrain config webhook` asks"),
        ("mail", {}, "smtp and mail not set"),
        ("", {"notify": "mail", "smtp": "smtp://h"}, "mail not set"),
    ],
)
def test_channels_that_are_not_set_up(
    given: str, settings: dict[str, str], reason: str, home: Path
) -> None:
    with pytest.raises(OptionError, match=reason):
        messages.channels(given, Config(**settings))  # type: ignore[arg-type]


def test_none_and_the_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRAIN_WEBHOOK", "https://example.org/x")
    assert messages.channels("none", Config(notify="webhook")) == ()
    assert messages.channels("", Config()) == ()
    assert messages.channels("", Config(notify="webhook")) == ("webhook",)


@pytest.mark.parametrize("address", ["file:///tmp/geheim", "http://example.org/geheim", "geheim"])
def test_a_webhook_of_a_variable_is_checked_too(
    address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRAIN_WEBHOOK", address)
    with pytest.raises(OptionError, match="no address that begins with https://") as refused:
        messages.channels("webhook", Config())
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("uri", ["smtp://u:geheim@h", "imap://h", "here"])
def test_a_mail_server_that_is_none(uri: str, home: Path) -> None:
    with pytest.raises(OptionError, match="invalid smtp") as refused:
        Config(smtp=uri).save()
    assert "geheim" not in str(refused.value)


def test_the_end_of_a_real_run_is_told_by_a_process_of_its_own(
    home: Path, hook: Any, box: Mailbox
) -> None:
    keep_secret("webhook", hook.url)
    Config(smtp=f"smtp://127.0.0.1:{box.port}", mail="you@there.org").save()
    run = api.submit("raise ValueError('shapes differ')", name="digits", notify="webhook,mail")
    assert eventually(lambda: hook.got and box.mails, 90)
    path, body = hook.got[0]
    assert path == SECRET_PATH
    assert body["text"].startswith(f"digits #{run.id} failed after")
    assert "ValueError: shapes differ" in body["text"]
    kept = [p for p in run.folder.rglob("*") if p.is_file()]
    assert not any(SECRET_PATH.encode() in p.read_bytes() for p in kept)
    assert (len(hook.got), len(box.mails)) == (1, 1)


def test_a_secret_is_asked_for_and_refused_in_a_cell(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = argparse.Namespace(settings=["webhook=https://hooks.slack.com/services/geheim"])
    with pytest.raises(OptionError, match="the notebook would keep") as refused:
        lines._config(options)
    assert "geheim" not in str(refused.value)
    monkeypatch.setattr("getpass.getpass", lambda _: "https://hooks.slack.com/services/geheim")
    monkeypatch.setattr(lines, "_follow_observing", lambda _: None)
    lines._config(argparse.Namespace(settings=["webhook", "notify=webhook"]))
    assert secret("webhook").endswith("geheim")
    shown = capsys.readouterr().out
    assert "notify = webhook" in shown
    assert "geheim" not in shown
    assert messages.channels("", Config.load()) == ("webhook",)


def test_a_job_elsewhere_whose_carrier_was_killed_has_not_failed(
    tmp_path: Path, hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Path] = []
    monkeypatch.setattr("distrain_nb.backends.remote.backend.start_carrier", started.append)
    monkeypatch.setattr(notify, "find", lambda name: FolderBackend())
    folder = run_folder(tmp_path, supervisor=Owner(2**22, "1"))
    record = json.loads((folder / RECORD_FILE).read_text())
    (folder / RECORD_FILE).write_text(json.dumps({**record, "backend": "folder", "handle": "{}"}))
    (folder / "submission.json").write_text("{}")
    assert watch(folder, hook).turn()
    assert started == [folder]
    assert not hook.got
