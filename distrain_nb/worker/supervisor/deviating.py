"""Compares what ranks note of their training while they run, and says what deviates once.

The comparison reads files alone, in a thread of its own, and again when all ranks have ended. On
several machines the supervisor of rank 0 compares all ranks whose files it sees, and speaks for
them. Every other one compares its own ranks: did each read the files of all, a shared folder would
be read as often as the square of the machines.
"""

from __future__ import annotations

import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Callable, List, Optional, Sequence, Set, Tuple

from distrain_nb.worker.facts.comparing import (
    IGNORE_VARIABLE,
    PREFIX,
    STRICT_VARIABLE,
    FactComparison,
)
from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.reader import settle
from distrain_nb.worker.files.folder import EVENTS_FOLDER, PROGRAM_FOLDER
from distrain_nb.worker.files.launch import Launch, fill
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE
from distrain_nb.worker.rank.program import variables
from distrain_nb.worker.rank.stacks import setting

COMPARED_EVERY_S = 2.0

Say = Optional[Callable[[str], None]]


class DeviationWatch:
    """Watches one run's facts. `note` has what deviates; `is_strict` ends the run for it."""

    def __init__(self, folder: Path, launch: Launch) -> None:
        program = folder / PROGRAM_FOLDER
        ranks = [process for process in launch.processes if process.rank is not None]
        environment = ranks[0].environment if ranks else {}
        events = fill(environment, folder, ()).get(FOLDER_VARIABLE, "") or setting(
            program, FOLDER_VARIABLE
        )
        self._events = Path(events) if events else None
        self._ranks = [process.rank for process in ranks if process.rank is not None]
        self._speaks = 0 in self._ranks
        compared = None if self._speaks else self._ranks
        ignored = setting(program, IGNORE_VARIABLE)
        self._comparison = FactComparison(self._events, ignored, compared) if self._events else None
        self.is_strict = bool(setting(program, STRICT_VARIABLE))
        self._told: Set[str] = set()
        self._deviations: Tuple[Deviation, ...] = ()
        self._is_over = threading.Event()

    def start(self) -> DeviationWatch:
        """Watch until the end is said, or as long as this process lives."""
        if self._events is not None:
            threading.Thread(target=self._run, name="deviations", daemon=True).start()
        return self

    def end(self) -> None:
        """Watch no more: the process of a session outlives a run."""
        self._is_over.set()

    def tell(self, say: Say) -> None:
        """Say in the log what is new. Not called by the thread."""
        for deviation in self._deviations:
            if deviation.code not in self._told and say:
                self._told.add(deviation.code)
                if self._speaks:
                    say(f"{PREFIX}{deviation.sentence} ({deviation.code})")

    def finish(self, say: Say) -> None:
        """Compare once more, when all ranks have ended."""
        if self._events is not None:
            with suppress(OSError):  # a full disk
                settle(self._events, self._ranks)
        self._compare(at_once=True)
        self.tell(say)

    @property
    def note(self) -> str:
        """What deviates, for beside the state; empty for nothing."""
        return note_of(self._deviations)

    @property
    def strict_reason(self) -> str:
        """Why --strict ends the run; empty for no reason."""
        if not self.is_strict or not self._deviations:
            return ""
        return f"stopped by --strict: {self._deviations[0].sentence}"

    def _run(self) -> None:
        while not self._is_over.wait(COMPARED_EVERY_S):
            self._compare()

    def _compare(self, *, at_once: bool = False) -> None:
        try:
            if self._comparison is not None:
                look = self._comparison.compare if at_once else self._comparison.look
                self._deviations = look()
        except Exception:  # files of another version, a folder that is away
            traceback.print_exc()  # into the supervisor's own log


class DeviationReader:
    """Reads what deviates in the run with this folder, as far as its files have come. Those of a
    version that has other fields say nothing."""

    def __init__(self, folder: Path) -> None:
        ignored = variables(folder / PROGRAM_FOLDER).get(IGNORE_VARIABLE, "")
        self._comparison = FactComparison(folder / EVENTS_FOLDER, ignored)

    def compare(self) -> Tuple[Deviation, ...]:
        """Compare now."""
        return _readable(self._comparison.compare)

    def look(self) -> Tuple[Deviation, ...]:
        """Compare if that was long enough ago."""
        return _readable(self._comparison.look)


def _readable(look: Callable[[], Tuple[Deviation, ...]]) -> Tuple[Deviation, ...]:
    try:
        return look()
    except (LookupError, TypeError, ValueError):
        return ()


def note_of(deviations: Sequence[Deviation]) -> str:
    """Return the note of a run in which something deviates; empty for nothing."""
    texts: List[str] = [deviation.sentence for deviation in deviations]
    return f"warning: {'; '.join(texts)}" if texts else ""
