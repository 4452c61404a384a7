"""A run elsewhere whose ranks ask whoever follows it, wherever these are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distrain_nb import api
from distrain_nb.api.source import Source
from distrain_nb.program import Cell, Notebook
from distrain_nb.run import Run
from distrain_nb.run.prompts import Dialogues, Question
from distrain_nb.worker.files import prompts
from tests.conftest import eventually

WITHIN_S = 120.0
ASKS = """\
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 1:
    name = input("who? ")
    breakpoint()
    print("hello", name)
dist.barrier()
"""
FAILS = """\
import os
rank = int(os.environ["RANK"])
if rank == 1:
    raise ValueError("boom")
"""
QUITS = """\
import os
if os.environ["RANK"] == "1":
    try:
        breakpoint()
        print("here")
    finally:
        os._exit(75)
"""
COUNTS = """\
import time
print("up", flush=True)
n = 0
while n < 6000:
    n += 1
    time.sleep(0.1)
"""


class Follower:
    """A kernel, as ranks see it, that follows a run."""

    def __init__(self, text: str, is_there: bool = True, **options: Any) -> None:
        cell = Cell("Cell In[1]", f"%%distrain\n{text}")
        notebook = Notebook({"__name__": "__main__"}, [cell], Path.cwd())
        prepared = api.prepare(Source(cell, notebook, first_line=2), wait=False, **options)
        self.run: Run = api.start(prepared, self.listen if is_there else None)
        self._dialogues = Dialogues(self.run.folder)

    @staticmethod
    def listen(folder: Path) -> None:
        prompts.listen(folder, answers=True)

    def asked(self) -> Question:
        """Return what is asked, by one rank at a time."""
        is_asked = eventually(lambda: self._dialogues.questions(), within=WITHIN_S)
        assert is_asked, f"{self.run.status}\n{self.run.logs()}"
        (question,) = self._dialogues.questions()
        return question

    def answer(self, text: str) -> None:
        self._dialogues.answer(self.asked(), text)

    def printed(self) -> str:
        return "".join(text for _, text in self._dialogues.take_printed())

    def ends(self) -> str:
        """Return the state in which it has ended."""
        assert eventually(lambda: self.run.state.final, within=WITHIN_S), self.run.logs()
        return str(self.run.state)


@contextmanager
def followed(text: str, **options: Any) -> Iterator[Follower]:
    follower = Follower(text, **options)
    try:
        yield follower
    finally:
        prompts.end_listening(follower.run.folder)
        follower.run.cancel()


def a_rank_is_answered(**options: Any) -> None:
    with followed(ASKS, **options) as kernel:
        assert (kernel.asked().asker.process, kernel.asked().text) == (1, "who? ")
        assert eventually(lambda: "rank 1 waits at a prompt" in kernel.run.status.note)
        kernel.answer("Ada")
        assert "db" in kernel.asked().text
        kernel.answer("p rank + 40")
        assert "db" in kernel.asked().text
        assert "41\n" in kernel.printed()
        kernel.answer("ranks p rank + 40")
        assert "db" in kernel.asked().text
        assert "here: 41\nrank 0: 40\n" in kernel.printed()
        kernel.answer("c")
        assert kernel.ends() == "succeeded", kernel.run.status.error
        assert "[rank 1] hello Ada" in kernel.run.logs()


def a_failed_rank_is_looked_at(**options: Any) -> None:
    with followed(FAILS, debug=True, **options) as kernel:
        assert "db" in kernel.asked().text
        kernel.answer("p rank + 40")
        assert "db" in kernel.asked().text
        assert "41\n" in kernel.printed()
        kernel.answer("q")
        assert kernel.ends() == "failed"
        assert "ValueError: boom" in kernel.run.status.error


def a_failed_rank_waits_for_somebody(**options: Any) -> None:
    """Nobody followed the run when it failed: `%distrain debug` comes later."""
    with followed(FAILS, is_there=False, debug=True, **options) as kernel:
        waits = "this rank waits 30 min for %distrain debug"
        assert eventually(lambda: waits in kernel.run.logs(), within=WITHIN_S)
        kernel.listen(kernel.run.folder)
        assert "db" in kernel.asked().text
        kernel.answer("c")
        assert kernel.ends() == "failed"


def quitting_ends_the_run(**options: Any) -> None:
    """Whoever leaves the debugger by `q` wants no further attempt."""
    with followed(QUITS, retries=2, retry_on="75", **options) as kernel:
        assert "db" in kernel.asked().text
        kernel.answer("q")
        assert kernel.ends() == "failed", kernel.run.logs()
        assert "exited with status 75" in kernel.run.status.error


def a_rank_is_stopped_where_it_is(**options: Any) -> None:
    with followed(COUNTS, **options) as kernel:
        assert eventually(lambda: kernel.run.logs().count("up") == 2, within=WITHIN_S)
        prompts.make_request(kernel.run.folder, prompts.STOP, (0,))
        assert kernel.asked().asker.process == 0
        kernel.answer("n = 9000")
        kernel.answer("c")
        kernel.run.cancel()
        assert kernel.ends() == "cancelled"
