"""Asks whoever sits at the notebook, from a rank or from a process that it has forked.

Questions and answers go through files of the run's folder (`files/prompts.py`). One thread of a
process asks at a time. While it waits, other threads run, and signals arrive.
"""

from __future__ import annotations

import io
import json
import os
import select
import sys
import threading
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional

from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.folder import PROMPTS_FOLDER
from distrain_nb.worker.files.private_folder import private_folder
from distrain_nb.worker.files.prompts import Asker, PromptRequest

LOOK_EVERY_S = 0.25  # at who listens; an answer itself comes at once
_LONGEST_WAITING = 1 << 16  # characters of output that wait for the next question
_here: Optional[_Here] = None
_dialogue: Optional[_Dialogue] = None
_lock = threading.RLock()


class NobodyAnswers(EOFError):
    """Nobody can answer."""


class _Here(NamedTuple):
    folder: Path
    process: int


def begin(folder: Path, process: int) -> None:
    """Note which process of which run this is, and what it forks is part of."""
    global _here, _dialogue
    _here, _dialogue = _Here(folder, process), None


def place() -> Optional[_Here]:
    """Return the run's folder and the process's number; None outside a run."""
    return _here


def is_answered(*, secret: bool = False) -> Optional[bool]:
    """Return whether somebody can answer, perhaps by a password; None where nobody follows the
    run."""
    return prompts.is_answered(_here.folder, secret=secret) if _here else None


def is_open() -> bool:
    """Return whether this process asks already."""
    return _dialogue is not None and _dialogue.is_open


def ask(text: str, secret: bool = False) -> str:
    """Ask, and wait for the answer. Raises NobodyAnswers where nobody can answer, or nobody can any
    more; EOFError for the end of input that they give."""
    if not is_answered(secret=secret) and (secret or not is_open()):
        raise NobodyAnswers
    with conversation() as dialogue:
        return dialogue.ask(text, secret)


@contextmanager
def conversation() -> Iterator[_Dialogue]:
    """Have the clocks of the run stand still for the block, and no other thread ask meanwhile."""
    with _lock, stream() as dialogue:
        yield dialogue


def stream() -> _Dialogue:
    """Return where this process prints what it says at its prompt, now or when it next asks."""
    global _dialogue
    assert _here is not None
    if _dialogue is None or _dialogue.asker.pid != os.getpid():
        _dialogue = _Dialogue(_here.folder, Asker(_here.process, os.getpid()))
    return _dialogue


def _renew_lock() -> None:
    """Give a forked process a lock that no thread of its parent holds."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


class _Dialogue(io.TextIOBase):
    """What this process says and asks: a stream for what a debugger prints."""

    def __init__(self, folder: Path, asker: Asker) -> None:
        self.asker = asker
        self.when_left: Optional[str] = None  # the answer that counts when nobody listens any more
        self._folder = folder
        self._depth = self._number = 0
        self._text = ""
        self._pipe = -1
        self._rest = b""

    @property
    def is_open(self) -> bool:
        return self._depth > 0 and self.asker.pid == os.getpid()

    def __enter__(self) -> _Dialogue:
        self._depth += 1
        if self._depth == 1:
            self._open()
        return self

    def __exit__(self, *_: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._close()

    def _open(self) -> None:
        folder = private_folder(self._folder / PROMPTS_FOLDER)
        self.asker.open(self._folder).touch()
        pipe = folder / self.asker.answers(self._folder).name
        if not pipe.exists():
            os.mkfifo(str(pipe), 0o600)
        # Open for writing too: else the pipe would be at its end whenever nobody writes.
        self._pipe = os.open(str(pipe), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._append({"open": True})

    def _close(self) -> None:
        self.flush()
        self._append({"open": False})
        self.when_left = None
        os.close(self._pipe)
        self._rest = b""
        for file in (self.asker.answers(self._folder), self.asker.open(self._folder)):
            if file.exists():
                file.unlink()

    def ask(self, text: str, secret: bool = False) -> str:
        """Ask as `prompt.ask` does."""
        sys.stdout.flush()
        self.flush()
        self._number += 1
        self._append({"number": self._number, "prompt": text, "secret": secret})
        try:
            return self._answer()
        finally:
            self._append({"answered": self._number})

    def inquire(self, request: PromptRequest) -> None:
        """Have ranks of other machines asked too."""
        self._append({"inquire": asdict(request)})

    def _answer(self) -> str:
        while True:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                word = json.loads(line)
                if word["number"] == self._number:
                    if word["text"] is None:
                        raise EOFError("the end of input was given")
                    return str(word["text"])
            # Not `select` alone: a question outlives the kernel that was to answer it.
            if not select.select([self._pipe], [], [], LOOK_EVERY_S)[0]:
                if not prompts.is_answered(self._folder):
                    if self.when_left is None:
                        raise NobodyAnswers
                    return self.when_left
                continue
            self._rest += os.read(self._pipe, 1 << 16)

    # -- the stream -------------------------------------------------------------------------------

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._text += text
        if len(self._text) > _LONGEST_WAITING:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self._text:
            text, self._text = self._text, ""
            self._append({"write": text})

    def _append(self, word: Dict[str, Any]) -> None:
        file = str(self.asker.asked(self._folder))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(file, flags, 0o600)
        try:
            os.write(descriptor, json.dumps(word).encode() + b"\n")
        finally:
            os.close(descriptor)
