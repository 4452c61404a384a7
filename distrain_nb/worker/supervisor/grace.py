"""The time between the request to stop and SIGKILL, in which programs save."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

from distrain_nb.worker.files import cause, marks
from distrain_nb.worker.files.folder import SAVED_FILE
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.status import Ending, State
from distrain_nb.worker.supervisor.child import Child, Launcher

# For a program that calls `on_stop` or `stopping`, where `--signal-before` doesn't say.
SAVES_WITHIN_S = 30.0
PROGRAM_ROLES = frozenset(["primary", "workers", "evaluators"])  # which run the program
NOT_SAVED = "what it had not saved is lost"
BY_ITSELF = (
    "warning: the program was told that its time limit is near, and has ended by itself: it may "
    "not be done"
)


class Grace:
    """Asks the processes of a run to end: first those that handle SIGTERM, and the others when
    these have saved or ended. Ranks train together: who waits for one that has gone can't save.

    `until` is when those are killed that have not ended by then, on the monotonic clock.
    """

    def __init__(self, folder: Path, launch: Launch, children: Sequence[Child]) -> None:
        self.until = 0.0
        self._folder, self._launch, self._children = folder, launch, children
        self._asked: List[Child] = []
        self._is_over = self._is_ahead = False
        marks.forget_stops(folder)

    def ask(self, *, ahead: bool = False) -> bool:
        """Send SIGTERM to the ranks that handle it, not to what they have started; return whether
        any has been asked now. It happens once, perhaps `ahead` of a time limit."""
        if self._asked:
            return False
        for child in self._living():
            pids = list(filter(handles_sigterm, _leaders(child, self._folder)))
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            self._asked += [child] * bool(pids)
        if self._asked:
            self._is_ahead = ahead
            self.until = time.monotonic() + self._seconds()
            for child in self._asked if ahead else self._living():
                child.signalled = True
        return bool(self._asked)

    def end(self) -> None:
        """Send SIGTERM to all that live; a rank with a function for `on_stop` ends by it."""
        self._is_over = True
        if self._asked:
            with suppress(OSError):  # on a full disk, ranks go on until they are killed
                (self._folder / SAVED_FILE).touch()
        for child in self._living():
            child.terminate()

    def _seconds(self) -> float:
        """How long the processes have from being asked to SIGKILL."""
        saves = SAVES_WITHIN_S if self._stops() else 0.0
        return max(self._launch.grace, self._launch.signal_before or saves)

    @property
    def is_open(self) -> bool:
        """Whether processes that were asked may still work."""
        return bool(self._asked) and not self._is_over and time.monotonic() < self.until

    @property
    def has_saved(self) -> bool:
        """Whether nobody who was asked is at work any more, and all others may end."""
        if self._is_over or not self._asked:
            return False
        return not any(child.alive and self._is_busy(child) for child in self._asked)

    def _is_busy(self, child: Child) -> bool:
        stops = [marks.Stop.read(self._folder, index) for index in child.specs]
        return not all(stop and stop.done for stop in stops)

    @property
    def has_agreed(self) -> bool:
        """Whether the program ends because `stopping` has told it to."""
        return any(stop.agreed for stop in self._stops().values())

    @property
    def ending(self) -> Ending:
        """How a run ends whose program was asked before anybody stopped the run itself."""
        if not self._is_ahead:
            reason = "it was stopped: ranks of another machine were asked to end"
            return Ending(State.FAILED, reason, cause.STOPPED)
        before, limit = self._launch.signal_before, self._launch.timeout
        how = f", {before:g} s ahead of --timeout {limit:g}" if before and limit else ""
        return Ending(State.FAILED, f"it was stopped near its time limit{how}", cause.NEAR_LIMIT)

    def has_saved_ahead(self, ending: Optional[Ending]) -> bool:
        """Return whether that is the ending of a run whose ranks were asked ahead of its time
        limit, and have all saved."""
        stops = self._stops()
        asked = self._is_ahead and bool(self._asked) and ending == self.ending
        return asked and bool(stops) and not any(self._troubles(stops))

    def ended_by_itself(self, succeeded: bool) -> bool:
        """Return whether a run has succeeded that may not be done: it was told that its time limit
        is near, and never asked to be told."""
        return succeeded and self._is_ahead and not self._stops()

    def words(self, succeeded: bool) -> str:
        """Say what has become of saving in a run that has ended; empty where no rank was asked."""
        stops = self._stops()
        if succeeded or not self._asked:
            return BY_ITSELF if self.ended_by_itself(succeeded) else ""
        troubles = list(self._troubles(stops))
        if troubles:
            return f"stopped: {'; '.join(troubles)}"
        times = [s.saved - s.began for s in stops.values() if s.saved and s.began]
        if times:
            return f"stopped after saving, in {max(times):.1f} s"
        last = max((stop.agreed for stop in stops.values()), default=None)
        agreed = "as stopping() has told all ranks"
        return "" if last is None else f"stopped after step {last}, {agreed}"

    def _troubles(self, stops: Dict[int, marks.Stop]) -> Iterator[str]:
        """Yield what kept ranks from saving."""
        labels = {index: self._launch.processes[index].label for index in stops}
        return filter(None, (_trouble(labels[index], stop) for index, stop in stops.items()))

    def _stops(self) -> Dict[int, marks.Stop]:
        """Return how far each rank is that had asked to save."""
        numbers = range(len(self._launch.processes))
        stops = {index: marks.Stop.read(self._folder, index) for index in numbers}
        return {index: stop for index, stop in stops.items() if stop is not None}

    def _living(self) -> Iterator[Child]:
        return (child for child in self._children if child.alive)


def _trouble(label: str, stop: marks.Stop) -> str:
    if stop.error:
        return f"{label} could not save: {stop.error}"
    if stop.saves and stop.began is None:
        return f"{label} was busy and did not begin to save; {NOT_SAVED}"
    if stop.saves and stop.saved is None:
        return f"{label} did not finish saving; {NOT_SAVED}"
    if not stop.saves and not stop.agreed:
        return f"{label} did not come to its next step; {NOT_SAVED}"
    return ""


def _leaders(child: Child, folder: Path) -> List[int]:
    """Return the ranks that a child is, or that `mpirun` has started for it; none of what serves
    ranks, which ends behind them."""
    if not child.roles & PROGRAM_ROLES:
        return []
    return list(marks.living(folder)) if isinstance(child, Launcher) else [child.pid]


def handles_sigterm(pid: int) -> bool:
    """Return whether a process has a handler for SIGTERM; False where the system doesn't tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    masks = [line[7:] for line in status.splitlines() if line.startswith("SigCgt:")]
    return any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks)
