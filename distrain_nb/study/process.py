"""What owns a study's trials, from the first to the last: the process `distrain_nb.study`.

All that it knows is on disk, so that another one can go on when it has been killed. The order of
its writes is what keeps a trial from being counted or started twice:

1. the trial's file, with its number and values, once they were suggested;
2. its run, on the list of runs, with the trial's number and attempt in its handle;
3. the trial's file, with the number of that run;
4. the run itself, which only a fork server begins;
5. the trial's file, that it is to be stopped, before it is;
6. the trial's file, with how it has ended; then the engine is told, which keeps nothing.

On a full disk any of these raises. Its owner waits for room then, and begins anew from the folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from distrain_nb.errors import DistrainError
from distrain_nb.study.cost import StudyCost
from distrain_nb.study.endings import TrialEnd, TrialMetrics, trial_end
from distrain_nb.study.files import (
    STOP_FILE,
    STORAGE_FILE,
    StudyFile,
    TrialFile,
    TrialState,
    read_trials,
    requested_trials,
)
from distrain_nb.study.full_disk import is_caused_by_full_disk, names_full_disk
from distrain_nb.study.launching import TrialLauncher
from distrain_nb.tuning.engine import Ending, SearchEngine
from distrain_nb.tuning.loop import COUNTED, TrialLoop
from distrain_nb.tuning.reports import Row, final_values
from distrain_nb.tuning.spec import Value
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import (
    Owner,
    State,
    Status,
    is_cancelled_as_untaken,
    request_cancel,
)
from distrain_nb.worker.machine.system import until_one_ends

if TYPE_CHECKING:
    from distrain_nb.run.store import Record

TURN_S = 0.1
SHORTEST_TURN_S = 0.005
NOTE_EVERY_S = 0.5  # what a running trial has reached, for those who look
COST_EVERY_S = 1.0  # whether it has cost what it may
MOST_ATTEMPTS = 3
MOST_UNCOUNTED = 20  # runs of a trial that were lost before the program began
STOPPED_BY_USER = "somebody stopped it"
CANCELLED = "the study was stopped"
DELETED = TrialEnd(TrialState.FAILED, "its run was deleted")


class StudyProcess(TrialLoop[TrialFile]):
    """One study whose trials are runs, from its folder to its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._study = StudyFile.read(folder)
        spec = self._study.parsed
        self._goals = tuple(goal.metric for goal in spec.goals)
        self._launcher = TrialLauncher(self._study, folder)
        self._cost = StudyCost.read(folder, self._study.backend)
        self._cost_at = 0.0
        self._records: dict[int, Record] = {}
        self._owners: dict[int, Owner | None] = {}
        self._metrics: dict[int, TrialMetrics] = {}
        self._ending: tuple[State, str] | None = None
        self._note_at: dict[int, float] = {}
        self._status = Status.read(folder)
        trials = read_trials(folder)
        outcomes = [(trial.parameters, self.outcome(trial)) for trial in trials]
        engine = SearchEngine(spec, outcomes, folder / STORAGE_FILE, self._study.name)
        super().__init__(spec, engine)
        self.trials = {trial.number: trial for trial in trials}
        self.endings = {t.number: self.ending(t) for t in trials if t.state.final}

    def run(self) -> None:
        """Run trials until the requested number has ended, or the study is stopped."""
        self._status = replace(self._status, supervisor=Owner.of(os.getpid()))
        self._enter(State.RUNNING)
        for trial in self.active():
            self._take_up(trial)
        while True:
            self.run_trials()
            self._end()
            if not self.wants_more():  # somebody may have asked while the last one ended
                return
            self._enter(State.RUNNING)

    def rest(self) -> bool:
        """Wait until a trial may have ended, but for a turn at most: others have news of theirs."""
        time.sleep(SHORTEST_TURN_S)
        owners = (self._owners.get(trial.number) for trial in self.active())
        until_one_ends([owner.pid for owner in owners if owner], TURN_S)
        return True

    def requested(self) -> int:
        return requested_trials(self._folder, self.spec)

    def _save(self, trial: TrialFile) -> TrialFile:
        trial.write(self._folder)
        self.trials[trial.number] = trial
        return trial

    # -- beginning --------------------------------------------------------------------------------

    def begin(self, number: int, values: Mapping[str, Value]) -> None:
        slot = self._free_slot()
        self._start(self._save(TrialFile(number, dict(values), slot=slot, begin=time.time())))

    def _start(self, trial: TrialFile) -> None:
        """Start a trial that has no run yet."""
        record = self._launcher.added(trial)
        trial = self._save(replace(trial, state=TrialState.RUNNING, run=record.id))
        try:
            self._launcher.begin(trial, record)
        except (DistrainError, OSError) as error:
            if is_caused_by_full_disk(error, self._folder):
                raise
            self._ended(trial, TrialEnd(TrialState.FAILED, f"it can't be started: {error}"))
            return
        self._records[trial.number] = record

    def _free_slot(self) -> int:
        """Return which of the shares of this machine no trial has."""
        taken = {trial.slot for trial in self.active()}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def _take_up(self, trial: TrialFile) -> None:
        """Go on with a trial that another process has left."""
        record = self._launcher.get(trial) if trial.run else self._launcher.find(trial)
        if record is None and trial.run:
            self._ended(trial, DELETED)
        elif record is None:
            self._start(trial)
        elif self._launcher.has_begun(record):
            state = trial.state if trial.state is TrialState.STOPPING else TrialState.RUNNING
            self._save(replace(trial, run=record.id, state=state))
            self._records[trial.number] = record
        else:
            self._launcher.discard(record)
            self._start(replace(trial, run=None))

    # -- looking after ----------------------------------------------------------------------------

    def look(self, trial: TrialFile) -> bool:
        """Read a trial's run, note what it has reached, and conclude it or try it again."""
        record = self._records[trial.number]
        try:
            status = self._launcher.status(record)
        except (OSError, ValueError):
            self._ended(trial, DELETED)
            return False
        self._owners[trial.number] = status.supervisor
        metrics = self._metrics.setdefault(trial.number, TrialMetrics(record.folder))
        news = metrics.read()
        if status.state.final:
            metrics.read()
            self._run_ended(self._with_values(trial, metrics), status)
            return False
        if news and time.monotonic() >= self._note_at.get(trial.number, 0.0):
            self._note_at[trial.number] = time.monotonic() + NOTE_EVERY_S
            trial = self._save(self._with_values(trial, metrics))
        return trial.state is TrialState.RUNNING and (news or self._is_unwanted(trial))

    def _run_ended(self, trial: TrialFile, status: Status) -> None:
        """Conclude a trial whose run has ended, or try it again."""
        if self._cost:
            spent = self._cost.paid(self._records[trial.number].folder)
            trial = replace(trial, paid=trial.paid + spent)
        end = trial_end(trial, status, self._metrics[trial.number], self.spec)
        if self._was_untaken(trial, status) and not self.ends:
            self._again(replace(trial, uncounted=trial.uncounted + 1))
        elif not end.again or self.ends:
            self._ended(trial, end)
        elif names_full_disk(status.error) and trial.uncounted < MOST_UNCOUNTED:
            self._again(replace(trial, uncounted=trial.uncounted + 1))
        elif status.lost_before_it_began and trial.uncounted < MOST_UNCOUNTED:
            if not self._launcher.has_begun(self._records[trial.number]):  # or it just came to life
                self._again(replace(trial, uncounted=trial.uncounted + 1))
        elif trial.attempt - trial.uncounted < MOST_ATTEMPTS:
            self._again(trial)
        else:
            self._ended(trial, end)

    def _was_untaken(self, trial: TrialFile, status: Status) -> bool:
        """Return whether a run came to life just after it was given up: it was told to stop then,
        which nobody has asked of its trial."""
        told = status.state is State.CANCELLED and trial.state is not TrialState.STOPPING
        folder = self._records[trial.number].folder
        return told and trial.uncounted < MOST_UNCOUNTED and is_cancelled_as_untaken(folder)

    def _with_values(self, trial: TrialFile, metrics: TrialMetrics) -> TrialFile:
        """Return the trial with what it has reached so far."""
        values = final_values(self.spec, metrics.values)
        return replace(trial, goals=values, steps=len(metrics.rows(self._goals[0])))

    def _is_unwanted(self, trial: TrialFile) -> bool:
        """Return whether somebody has asked for this trial to be stopped."""
        return (self._folder / STOP_FILE.format(trial.number)).exists()

    def reason_to_stop(self, trial: TrialFile) -> str:
        return STOPPED_BY_USER if self._is_unwanted(trial) else super().reason_to_stop(trial)

    def ending(self, trial: TrialFile) -> Ending:
        return cast("Ending", str(trial.state)) if trial.state.final else "running"

    def rows(self, trial: TrialFile) -> list[Row]:
        if trial.number not in self._metrics:
            record = self._launcher.get(trial)
            metrics = TrialMetrics(record.folder if record else self._folder / "deleted")
            metrics.read()
            self._metrics[trial.number] = metrics
        return self._metrics[trial.number].rows(self._goals[0])

    def values(self, trial: TrialFile) -> tuple[float, ...]:
        return tuple(trial.goals.get(goal, 0.0) for goal in self._goals)

    def stop(self, trial: TrialFile, why: str) -> None:
        if trial.state is TrialState.RUNNING:
            self._save(replace(trial, state=TrialState.STOPPING, why=why or CANCELLED))
            request_cancel(self._records[trial.number].folder)

    def _again(self, trial: TrialFile) -> None:
        """Start a trial once more: what ended its run had nothing to do with its values."""
        del self._metrics[trial.number]
        request_cancel(self._records[trial.number].folder)
        again = replace(trial, state=TrialState.REQUESTED, run=None, attempt=trial.attempt + 1)
        self._start(self._save(replace(again, goals={}, steps=0)))

    def _ended(self, trial: TrialFile, end: TrialEnd) -> None:
        goals = dict(end.goals or trial.goals)
        ended = replace(trial, state=end.state, why=end.why, goals=goals, end=time.time())
        self.conclude(self._save(ended))

    # -- the end ----------------------------------------------------------------------------------

    def decide(self) -> bool:
        kernel = self._study.kernel
        if (self._folder / CANCEL_FILE).exists():
            self._ending = State.CANCELLED, ""
        elif kernel is not None and not kernel.alive:
            self._ending = State.CANCELLED, "the kernel that waited for it has ended"
        else:
            self._ending = self._failing() or self._too_costly()
        if self._ending is not None:
            self._enter(State.STOPPING)
        return self._ending is not None

    def _failing(self) -> tuple[State, str] | None:
        failed, most = self.with_ending("failed"), self.spec.max_failed
        if most and len(failed) >= most:
            return State.FAILED, f"{len(failed)} trials failed; the last: {failed[-1].why}"
        if self.all_failed_at_first():
            return State.FAILED, f"the first {len(failed)} trials failed: {failed[-1].why}"
        return None

    def _too_costly(self) -> tuple[State, str] | None:
        if self._cost is None or time.monotonic() < self._cost_at:
            return None
        self._cost_at = time.monotonic() + COST_EVERY_S
        self._cost = self._cost.keep(self._folder)
        if not self._cost.cost.limit:
            return None
        running = [
            record.folder for number, record in self._records.items() if number not in self.endings
        ]
        why = self._cost.reaches(self._cost.seconds(self.trials.values(), running))
        return (State.FAILED, why) if why else None

    def _end(self) -> None:
        state, error = self._ending or (State.SUCCEEDED, "")
        if self._ending is None and not self.with_ending(*COUNTED):
            state, error = State.FAILED, "no trial finished with a value"
        self._enter(state, error=error)
        self._launcher.end()

    def _enter(self, state: State, error: str = "") -> None:
        self._status = self._status.enter(state, str(state), error=error, note="")
        self._status.write(self._folder)
