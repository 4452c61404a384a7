"""Tells by a webhook or a mail that a run has ended or makes no progress.

A process of its own follows the run's folder (`python -m distrain_nb.tracking.notify FOLDER
CHANNEL…`), so that nothing waits for it, and kernel and page may be gone. A run that has passed a
limit ends, with that as its cause. Each notice goes to each channel once. What can't be sent is
tried once more, and then said in the run's log. `study.notices` does the same for a study.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.config import Config
from distrain_nb.errors import DistrainError
from distrain_nb.secrets import Guard
from distrain_nb.tracking.messages import Message, attempt, senders
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import CARRIER_LOG, JOURNAL_FILE, PROGRAM_FOLDER, RECORD_FILE
from distrain_nb.worker.files.log import LineSplitter, LogWriter
from distrain_nb.worker.files.status import Process, Status

PROCESS = "distrain_nb.tracking.notify"
PROCESS_LOG = "notify.log"  # text: what the process prints
LOOK_EVERY_S = 1.0
AGAIN_AFTER_S = 3.0
LONGEST = 2000  # characters of a message


def begin(folder: Path, names: tuple[str, ...], process: str = PROCESS) -> None:
    """Have a process follow that run, which outlives this one. Raises OSError."""
    start_detached(["-m", process, str(folder), *names], folder / PROCESS_LOG)


class RunWatch:
    """One run, and what has been told of it."""

    noun, verb, file = "run", "show", RECORD_FILE

    def __init__(self, folder: Path, send: Mapping[str, Callable[[Message], None]]) -> None:
        self._folder = folder
        self._send = send
        self._hung = False
        self._failures: dict[str, str] = {}

    def status(self) -> Status:
        """Return how it is doing; whoever answers for it is started again where that can be."""
        from distrain_nb.run.store import Record  # a process that only waits stays small

        record = Record.read(self._folder)
        return find(record.backend).status(record.handle, self._folder)

    def ending(self, status: Status) -> str:
        """Say what there is to say of the end."""
        return status.error.strip().partition("\n")[0]

    def name(self, record: Mapping[str, object], number: int) -> str:
        """Return what a title calls it."""
        return f"{record.get('name') or self._folder.name} #{number}"

    def say(self, text: str) -> None:
        """Have its user read that where it has ended. Raises OSError."""
        _say_in_log(self._folder, text)

    def turn(self) -> bool:
        """Tell what is new; return whether the run goes on."""
        try:
            status = Status.read(self._folder)
            if not status.state.final and not status.answered_for:
                status = self.status()
        except FileNotFoundError:  # not begun yet, or deleted
            return self._folder.exists()
        except (OSError, fields.Damaged, DistrainError):
            return True
        if status.hang and not status.state.final:
            if not self._hung:
                self._tell("hang", status.note, status)
            self._hung = True
        else:
            self._hung = False
        if status.state.final:
            self._tell("end", self.ending(status), status)
            self._say_failures()
        return not status.state.final

    def _tell(self, event: str, text: str, status: Status) -> None:
        message = self._message(event, text, status)
        for channel, send in self._send.items():
            failure = attempt(send, message) and attempt(send, message, AGAIN_AFTER_S)
            if failure:
                self._failures.setdefault(channel, f"{channel}: {failure}")

    def _say_failures(self) -> None:
        if self._failures:
            text = f"distrain: some notices could not be sent; {'; '.join(self._failures.values())}"
            with suppress(OSError):
                self.say(text)

    def _message(self, event: str, text: str, status: Status) -> Message:
        """Return the message about it; without what looks like a secret, in its name either."""
        guard = Guard.of_run(self._folder / PROGRAM_FOLDER)
        record = {}
        with suppress(OSError, fields.Damaged):
            record = fields.load(self._folder / self.file)
        number, state = int(record.get("id") or 0), str(status.state)
        words = {"end": state, "hang": "makes no progress"}[event]
        took = ""
        if event == "end" and state in status.times and record.get("created"):
            took = f" after {_duration(status.times[state] - float(record['created']))}"
        title = guard.text(f"{self.name(record, number)} {words}{took}")
        name = guard.text(str(record.get("name") or self._folder.name))
        text = guard.text(text)[:LONGEST]
        return Message(event, title, text, number, name, state, self.noun, self.verb)


def _duration(seconds: float) -> str:
    rounded = max(0, int(seconds))
    if rounded < 60:
        return f"{rounded} s"
    return (
        f"{rounded // 60} min"
        if rounded < 3600
        else f"{rounded // 3600} h {rounded % 3600 // 60:02d} min"
    )


def _say_in_log(folder: Path, text: str) -> None:
    """Write it where a run has ended: nobody else writes its log any more. Raises OSError."""
    if (folder / JOURNAL_FILE).exists():  # whose log goes on where the journal says
        with (folder / CARRIER_LOG).open("a", encoding="utf-8") as log:
            log.write(f"{text}\n")
        return
    status = Status.read(folder)
    service = next((p for p in status.processes if p.role == "service"), None)
    if service is None:
        service = Process(len(status.processes), "service", "service", 0)
        replace(status, processes=(*status.processes, service)).write(folder)
    log_writer = LogWriter(folder)
    log_writer.write(LineSplitter(service.index, "e").feed(f"{text}\n".encode()))
    log_writer.close()


def main(watch: type[RunWatch], folder: Path, names: list[str]) -> None:
    """Follow a run or a study to its end."""
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched = watch(folder, senders(names, Config.load()))
    while watched.turn():
        time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    main(RunWatch, Path(sys.argv[1]), sys.argv[2:])
