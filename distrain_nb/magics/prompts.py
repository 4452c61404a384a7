"""Asks in the notebook what ranks of a run ask: `input()`, and the prompts of debuggers.

One question at a time: a rank that has been answered may ask the next, else another's turn comes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.plugins import find
from distrain_nb.errors import OptionError
from distrain_nb.run.prompts import Dialogues, Question
from distrain_nb.ui.frontend import can_answer
from distrain_nb.ui.question import ask
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.launch import Launch, ProcessSpec
from distrain_nb.worker.files.marks import pid_of
from distrain_nb.worker.files.prompts import Asker
from distrain_nb.worker.supervisor.heartbeat import is_watched

if TYPE_CHECKING:
    from distrain_nb.run import Run
    from distrain_nb.worker.files.status import Process

# A rank that goes on stepping asks again within a moment, and one that is at its prompt once it has
# done what it was told. Another's question waits so long, and no longer: it may wait for that one.
SAME_RANK_WITHIN_S, SAME_COMMAND_WITHIN_S = 0.3, 10.0
# A page that was there, and hasn't been for so long, is taken for closed.
PAGE_GONE_AFTER_S = 600.0
STOPS_WITHIN_S = 10.0
_TURN_S = 0.05


@contextmanager
def attended(folder: Path) -> Iterator[None]:
    """Have the ranks of a run know for the block whether somebody can answer here."""
    prompts.listen(folder, answers=can_answer())
    try:
        yield
    finally:
        prompts.end_listening(folder)


class Attendant:
    """Asks what the ranks of a run ask. `refresh` keeps the run's view current meanwhile."""

    def __init__(self, run: Run, refresh: Callable[[], None]) -> None:
        self._run = run
        self._refresh = refresh
        self._dialogues = Dialogues(run.folder)
        self._last: Asker | None = None
        self._printing: Asker | None = None
        self._answered_at = 0.0
        self._page_seen_at = 0.0

    def turn(self) -> None:
        """Print what ranks have said, and ask a question if there is one; else return at once.

        Raises KeyboardInterrupt for an interrupt at a prompt.
        """
        questions = self._dialogues.questions()
        self._print()
        question = self._choose(questions)
        if question is not None:
            self._ask(question)

    def _choose(self, questions: list[Question]) -> Question | None:
        same = next((question for question in questions if question.asker == self._last), None)
        if same is not None or not questions:
            return same
        is_at_prompt = self._last in prompts.open_prompts(self._run.folder)
        patience = SAME_COMMAND_WITHIN_S if is_at_prompt else SAME_RANK_WITHIN_S
        return None if time.monotonic() - self._answered_at < patience else questions[0]

    def _ask(self, question: Question) -> None:
        self._page_seen_at = 0.0
        label = self._label(question.asker)
        try:
            text = ask(
                f"[{label}] {question.text}",
                secret=question.secret,
                is_withdrawn=lambda: question not in self._dialogues.questions() or self._is_left(),
                meanwhile=self._refresh,
            )
        except EOFError:
            self._dialogues.answer(question, None)
        else:
            if text is not None:
                self._dialogues.answer(question, text)
        self._last, self._answered_at = question.asker, time.monotonic()
        if self._is_left():
            print("Nobody can answer any more: the page has been closed.", file=sys.stderr)
            prompts.end_listening(self._run.folder)

    def _is_left(self) -> bool:
        """Return whether the page that showed the run has been closed for long."""
        if is_watched(self._run.folder):
            self._page_seen_at = time.monotonic()
        gone = time.monotonic() - self._page_seen_at
        return self._page_seen_at > 0 and gone > PAGE_GONE_AFTER_S

    def _print(self) -> None:
        for asker, text in self._dialogues.take_printed():
            if asker != self._printing:
                print(f"--- {self._label(asker)} ---")
                self._printing = asker
            print(text, end="" if text.endswith("\n") else "\n")

    def _label(self, asker: Asker) -> str:
        """Return the name of a process as the log has it; with its number, that of a child."""
        process = next((p for p in self._run.status.processes if p.index == asker.process), None)
        label = process.label if process else _planned_label(self._run, asker.process)
        of_rank = pid_of(self._run.folder, asker.process) or (process and process.pid)
        return label if of_rank in (None, asker.pid) else f"{label}, process {asker.pid}"


def _planned_label(run: Run, number: int) -> str:
    """Return the name of a process, also before the run's status has it."""
    planned = _planned(run)
    return planned[number].label if number < len(planned) else f"process {number}"


def _planned(run: Run) -> Sequence[Process | ProcessSpec]:
    """Return the processes of a run that may just have been started."""
    has_launch = run.is_here or run.session
    return Launch.read(run.folder).processes if has_launch else run.status.processes


def debug(run: Run, rank: int | None) -> None:
    """Ask at the prompt of a rank, until it is left: where it stands, or has failed, or else where
    it is now. An interrupt leaves it.

    Raises OptionError where there is nothing to ask, or nobody to answer.
    """
    _refuse(run)
    process = None if rank is None else _process_of(run, rank)
    with attended(run.folder):
        if not _waits_at_prompt(run, process):
            _stop_at_prompt(run, process or 0)
        attendant, left_at = Attendant(run, lambda: None), float("inf")
        try:
            while not run.state.final and time.monotonic() < left_at:
                attendant.turn()
                if _waits_at_prompt(run, None):
                    left_at = float("inf")
                else:
                    left_at = min(left_at, time.monotonic() + 2 * SAME_RANK_WITHIN_S)
                time.sleep(_TURN_S)
            attendant.turn()
        except KeyboardInterrupt:
            print(f"{run.title} goes on: %distrain cancel {run.id} stops it")


def _refuse(run: Run) -> None:
    if not find(run.backend).asks:
        raise OptionError(
            f"{run.title} can't be debugged: ranks on {find(run.backend).title} can't ask"
        )
    if not (run.is_here or run.session or prompts.is_relayed(run.folder)):
        raise OptionError(
            f"{run.title} can't be debugged: its ranks on {find(run.backend).title} were started "
            "without a prompt; start it with --wait, or with --debug"
        )
    if run.state.final:
        raise OptionError(
            f"{run.title} has ended, and its ranks with it: run the cell with --debug, which asks "
            "below it at the line where a rank fails"
        )
    if not can_answer():
        raise OptionError(
            f"{run.title} can't be debugged here: nothing that shows this notebook can answer "
            "input()"
        )


def _process_of(run: Run, rank: int) -> int:
    """Return the number of a rank's process, also of a run that has just been started. Raises
    OptionError."""
    planned = enumerate(_planned(run))
    processes = {spec.rank: number for number, spec in planned if spec.rank is not None}
    if rank not in processes:
        ranks = f"its ranks are 0 to {max(processes)}" if len(processes) > 1 else "it has rank 0"
        raise OptionError(f"invalid --rank {rank}: {run.title} has no rank {rank}; {ranks}")
    return processes[rank]


def _waits_at_prompt(run: Run, process: int | None) -> bool:
    waiting = prompts.open_prompts(run.folder)
    return any(process in (None, asker.process) for asker in waiting)


def _stop_at_prompt(run: Run, process: int) -> None:
    prompts.make_request(run.folder, prompts.STOP, (process,))
    end = time.monotonic() + STOPS_WITHIN_S
    while not _waits_at_prompt(run, process):
        if run.state.final:
            _refuse(run)
        if time.monotonic() > end:
            raise OptionError(
                f"{_planned_label(run, process)} of {run.title} did not stop within "
                f"{STOPS_WITHIN_S:g} s: its program has not started, or native code holds the GIL; "
                f"`%distrain stacks {run.id}` shows where it is"
            )
        time.sleep(_TURN_S)
