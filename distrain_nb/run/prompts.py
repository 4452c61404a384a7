"""What the ranks of a run here say at their prompts and ask, and the answers to it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

from distrain_nb.types import Json
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.prompts import Asker


@dataclass(frozen=True)
class Question:
    """A question that waits for its answer; that to a `secret` one isn't shown."""

    asker: Asker
    number: int
    text: str
    secret: bool


@dataclass
class _Dialogue:
    """One process's part, as far as it has been read."""

    position: int = 0
    rest: bytes = b""
    pending: Question | None = None
    printed: list[str] = field(default_factory=list)


class Dialogues:
    """The dialogues with all processes of a run. Threads may share one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._dialogues: dict[Asker, _Dialogue] = {}
        self._lock = threading.Lock()

    def questions(self) -> list[Question]:
        """Return what is asked now, in the order of the processes' numbers."""
        with self._lock:
            alive = prompts.open_prompts(self._folder)
            for asker in prompts.askers(self._folder):
                self._read(asker)
            dialogues = [self._dialogues[asker] for asker in alive if asker in self._dialogues]
            return [dialogue.pending for dialogue in dialogues if dialogue.pending is not None]

    def take_printed(self) -> list[tuple[Asker, str]]:
        """Return what processes have printed at their prompts since the last call."""
        with self._lock:
            printed = [(asker, "".join(d.printed)) for asker, d in self._dialogues.items()]
            for dialogue in self._dialogues.values():
                dialogue.printed.clear()
            return [(asker, text) for asker, text in printed if text]

    def answer(self, question: Question, text: str | None) -> None:
        """Answer; None is the end of input."""
        prompts.send_answer(self._folder, question.asker, question.number, text)
        with self._lock:  # a rank that lacks CPU time takes the answer late: it isn't asked again
            dialogue = self._dialogues.get(question.asker)
            if dialogue is not None and dialogue.pending == question:
                dialogue.pending = None

    def _read(self, asker: Asker) -> None:
        dialogue = self._dialogues.setdefault(asker, _Dialogue())
        try:
            with asker.asked(self._folder).open("rb") as file:
                file.seek(dialogue.position)
                data = file.read()
        except FileNotFoundError:  # the run has been started again
            del self._dialogues[asker]
            return
        dialogue.position += len(data)
        *lines, dialogue.rest = (dialogue.rest + data).split(b"\n")
        for line in lines:
            self._take(asker, dialogue, json.loads(line))

    def _take(self, asker: Asker, dialogue: _Dialogue, word: dict[str, Json]) -> None:
        if "write" in word:
            dialogue.printed.append(str(word["write"]))
        elif "answered" in word:
            dialogue.pending = None
        elif "number" in word:
            number, secret = int(str(word["number"])), bool(word["secret"])
            dialogue.pending = Question(asker, number, str(word["prompt"]), secret)
