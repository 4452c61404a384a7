"""A real study's end reaches a webhook and a mail server, once each, whose kernel has ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.config import Config
from distrain_nb.study import find_study
from distrain_nb.study.files import TOLD_FILE
from distrain_nb.study.notices import StudyWatch
from distrain_nb.tracking.credentials import keep_secret
from distrain_nb.worker.files.status import Status
from tests.conftest import eventually
from tests.study.conftest import process_of
from tests.tracking.hook import serving_hook
from tests.tracking.mail_server import Mailbox, serving_mail

pytestmark = pytest.mark.slow

KERNEL = """\
import os, sys
from distrain_nb import study
code = '''
import os, time
from distrain_nb import log_metrics
while not os.path.exists(gate):
    time.sleep(0.05)
log_metrics(loss=(x - 3.0) ** 2)
'''
tuned = study.tune(
    code.replace("gate", repr(sys.argv[1])), tune="x=1|2|3", goal="min:loss", search="grid",
    name="bowl", notify="webhook,mail",
)
os._exit(0)
"""
BEST = "best loss 0 in trial 3 (x=3)"


@pytest.fixture
def told(home: Path) -> Iterator[tuple[list[Any], Mailbox]]:
    """What a webhook and a mail server get."""
    with serving_hook() as hook, serving_mail(Mailbox()) as box:
        keep_secret("webhook", hook.url)
        Config(smtp=f"smtp://127.0.0.1:{box.port}", mail="you@there.org").save()
        yield hook.got, box


@pytest.fixture
def gate(told: object, tmp_path: Path) -> Path:
    """Start a study from a kernel that ends at once; its trials wait for the file."""
    path = tmp_path / "gate"
    subprocess.run([sys.executable, "-c", KERNEL, str(path)], check=True, cwd=tmp_path)
    return path


def message(told: tuple[list[Any], Mailbox]) -> dict[str, Any]:
    """Wait for the message and for nothing more."""
    got, box = told
    assert eventually(lambda: got and box.mails, 120)
    assert not eventually(lambda: len(got) > 1 or len(box.mails) > 1, 3)
    ((_, body),) = got
    assert "`%distrain tune 1` shows it." in box.mails[0]
    assert body["text"].splitlines()[-1] in box.mails[0]
    return dict(body)


def test_the_end(gate: Path, told: tuple[list[Any], Mailbox]) -> None:
    gate.touch()
    body = message(told)
    title, trials, best = body.pop("text").splitlines()
    assert title.startswith("study bowl #1 succeeded after ")
    assert (trials, best) == ("3 of 3 trials", BEST)
    assert body == {"event": "end", "study": 1, "name": "bowl", "state": "succeeded"}


def test_a_study_that_is_stopped(gate: Path, told: tuple[list[Any], Mailbox]) -> None:
    study = find_study("bowl")
    assert eventually(lambda: study.all_trials(), 60)
    study.cancel()
    title, trials = message(told)["text"].splitlines()
    assert title.startswith("study bowl #1 cancelled after ")
    assert trials.endswith("of 3 trials")


def test_a_study_whose_process_is_killed_goes_on(
    gate: Path, told: tuple[list[Any], Mailbox]
) -> None:
    folder = find_study("bowl").folder
    assert eventually(lambda: Status.read(folder).supervisor and list(folder.glob("trials/*")), 60)
    process = process_of(find_study("bowl"))
    process.kill()
    gate.touch()
    title, trials, best = message(told)["text"].splitlines()
    assert title.startswith("study bowl #1 succeeded after ")
    assert (trials, best) == ("3 of 3 trials", BEST)


def test_what_could_not_be_sent_is_noted(
    gate: Path, told: tuple[list[Any], Mailbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = find_study("bowl")
    study.cancel()
    message(told)
    (study.folder / TOLD_FILE).unlink()

    def fails(_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("distrain_nb.tracking.notify.AGAIN_AFTER_S", 0.0)
    StudyWatch(study.folder, {"mail": fails}).turn()
    failure = "some notices could not be sent; mail: ConnectionRefusedError: Connection refused"
    assert failure in study.status.note


def test_more_trials_of_a_study_that_has_ended(gate: Path, told: tuple[list[Any], Mailbox]) -> None:
    gate.touch()
    message(told)
    study = find_study("bowl")
    told[0].clear()
    told[1].mails.clear()
    study.more(1)
    title, trials, _ = message(told)["text"].splitlines()
    assert title.startswith("study bowl #1 succeeded after ")
    assert trials == "3 of 4 trials", "the grid has no fourth"
