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
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.study.curves import TrialMetrics, curve
from distrain_nb.study.endings import Ending, ending_of, final_values
from distrain_nb.study.files import (
    STOP_FILE,
    STORAGE_FILE,
    StudyFile,
    TrialFile,
    TrialState,
    read_trials,
    wanted,
)
from distrain_nb.study.full_disk import is_of_full_disk, says_full
from distrain_nb.study.launching import TrialLauncher
from distrain_nb.tuning.engine import Outcome, SearchEngine
from distrain_nb.tuning.stopping import reason_to_stop
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import Owner, State, Status, request_cancel
from distrain_nb.worker.machine.system import until_one_ends

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.run.store import Record
    from distrain_nb.tuning.stopping import Curve

TURN_S = 0.1
SHORTEST_TURN_S = 0.005
NOTE_EVERY_S = 0.5  # what a running trial has reached, for those who look
MOST_ATTEMPTS = 3
MOST_UNCOUNTED = 20  # runs of a trial that were lost before the program began
FAILED_AT_FIRST = 3  # trials, after which a study ends of which none has succeeded
STOPPED_BY_USER = "somebody stopped it"
CANCELLED = "the study was stopped"


class StudyProcess:
    """One study, from its folder to its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._study = StudyFile.read(folder)
        self._spec = self._study.parsed
        self._goals = tuple(goal.metric for goal in self._spec.goals)
        self._launcher = TrialLauncher(self._study, folder)
        self._trials = {trial.number: trial for trial in read_trials(folder)}
        self._records: dict[int, Record] = {}
        self._owners: dict[int, Owner | None] = {}
        self._metrics: dict[int, TrialMetrics] = {}
        self._ending: tuple[State, str] | None = None
        self._curves: dict[int, Curve] = {}
        self._note_at: dict[int, float] = {}
        self._exhausted = False
        self._status = Status.read(folder)
        known = [(t.parameters, self._outcome(t)) for t in self._trials.values()]
        self._engine = SearchEngine(self._spec, known, folder / STORAGE_FILE, self._study.name)

    def run(self) -> None:
        """Until there are the trials that were asked for, or the study is stopped."""
        self._status = replace(self._status, supervisor=Owner.of(os.getpid()))
        self._enter(State.RUNNING)
        for trial in self._active():
            self._take_up(trial)
        while True:
            for trial in self._active():
                self._look_after(trial)
            self._decide()
            self._begin_more()
            if self._active():
                self._rest()
                continue
            self._end()
            if not self._wants_more():  # somebody may have asked while the last one ended
                return
            self._enter(State.RUNNING)

    def _rest(self) -> None:
        """Until a trial may have ended, but for a turn at most: others have news of theirs."""
        time.sleep(SHORTEST_TURN_S)
        owners = (self._owners.get(trial.number) for trial in self._active())
        until_one_ends([owner.pid for owner in owners if owner], TURN_S)

    def _active(self) -> list[TrialFile]:
        return [trial for trial in self._trials.values() if not trial.state.final]

    def _save(self, trial: TrialFile) -> TrialFile:
        trial.write(self._folder)
        self._trials[trial.number] = trial
        return trial

    # -- beginning --------------------------------------------------------------------------------

    def _begin_more(self) -> None:
        """As many as may run at once, while some are wanted."""
        while len(self._active()) < self._spec.parallel and self._wants_more():
            values = self._engine.ask()
            if values is None:
                self._exhausted = True
                return
            number, slot = len(self._trials) + 1, self._free_slot()
            trial = TrialFile(number, values, slot=slot, begin=time.time())
            self._begin(self._save(trial))

    def _wants_more(self) -> bool:
        if self._ending is not None or self._exhausted:
            return False
        return len(self._trials) < wanted(self._folder, self._spec)

    def _begin(self, trial: TrialFile) -> None:
        """Start a trial that has no run yet."""
        record = self._launcher.added(trial)
        trial = self._save(replace(trial, state=TrialState.RUNNING, run=record.id))
        self._submit(trial, record)

    def _submit(self, trial: TrialFile, record: Record) -> None:
        try:
            self._launcher.begin(trial, record)
        except (DistrainError, OSError) as error:
            if is_of_full_disk(error, self._folder):
                raise
            self._conclude(trial, Ending(TrialState.FAILED, f"it can't be started: {error}"))
            return
        self._records[trial.number] = record

    def _free_slot(self) -> int:
        """Return which of the shares of this machine no trial has."""
        taken = {trial.slot for trial in self._active()}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def _take_up(self, trial: TrialFile) -> None:
        """Go on with a trial that another process has left."""
        record = self._launcher.get(trial) if trial.run else self._launcher.find(trial)
        if record is None and trial.run:
            self._conclude(trial, Ending(TrialState.FAILED, "its run was deleted"))
        elif record is None:
            self._begin(trial)
        elif self._launcher.has_begun(record):
            self._save(replace(trial, run=record.id, state=_begun(trial)))
            self._records[trial.number] = record
        else:
            self._launcher.discard(record)
            self._begin(replace(trial, run=None))

    # -- looking after ----------------------------------------------------------------------------

    def _look_after(self, trial: TrialFile) -> None:
        record = self._records[trial.number]
        try:
            status = self._launcher.status(record)
        except (OSError, ValueError):
            self._conclude(trial, Ending(TrialState.FAILED, "its run was deleted"))
            return
        self._owners[trial.number] = status.supervisor
        metrics = self._metrics.setdefault(trial.number, TrialMetrics(record.folder))
        news = metrics.read()
        if status.state.final:
            metrics.read()
            self._ended(self._with_values(trial, metrics), record, status, metrics)
            return
        if news and time.monotonic() >= self._note_at.get(trial.number, 0.0):
            self._note_at[trial.number] = time.monotonic() + NOTE_EVERY_S
            trial = self._save(self._with_values(trial, metrics))
        if trial.state is TrialState.RUNNING:
            why = self._reason_to_stop(trial, news)
            if why:
                self._stop(trial, why)

    def _ended(
        self, trial: TrialFile, record: Record, status: Status, metrics: TrialMetrics
    ) -> None:
        """Conclude a trial whose run has ended, or try it again."""
        ending = ending_of(trial, status, metrics, self._spec)
        if not ending.again or self._ending is not None:
            self._conclude(trial, ending)
        elif says_full(status.error) and trial.uncounted < MOST_UNCOUNTED:
            self._again(replace(trial, uncounted=trial.uncounted + 1))
        elif status.lost_before_it_began and trial.uncounted < MOST_UNCOUNTED:
            if not self._launcher.has_begun(record):  # its supervisor may just have come to life
                self._again(replace(trial, uncounted=trial.uncounted + 1))
        elif trial.attempt - trial.uncounted < MOST_ATTEMPTS:
            self._again(trial)
        else:
            self._conclude(trial, ending)

    def _with_values(self, trial: TrialFile, metrics: TrialMetrics) -> TrialFile:
        """With what it has reached so far."""
        values = final_values(metrics, self._spec)
        return replace(trial, goals=values, steps=len(metrics.rows(self._goals[0])))

    def _reason_to_stop(self, trial: TrialFile, news: bool) -> str:
        if self._ending is not None:
            return CANCELLED
        if (self._folder / STOP_FILE.format(trial.number)).exists():
            return STOPPED_BY_USER
        rule = self._spec.stopping
        if rule is None or not news:
            return ""
        others = [t for t in self._trials.values() if t.state in _COUNT]
        curves = [self._ended_curve(other) for other in others]
        return reason_to_stop(rule, self._spec.goals[0].direction, self._curve(trial), curves)

    def _ended_curve(self, trial: TrialFile) -> Curve:
        if trial.number not in self._curves:
            self._curves[trial.number] = self._curve(trial)
        return self._curves[trial.number]

    def _curve(self, trial: TrialFile) -> Curve:
        by_time = getattr(self._spec.stopping, "use_elapsed_duration", False)
        rows = self._metrics_of(trial).rows(self._goals[0])
        return curve(rows, trial.begin if by_time else None)

    def _metrics_of(self, trial: TrialFile) -> TrialMetrics:
        if trial.number not in self._metrics:
            record = self._launcher.get(trial)
            trial_metrics = TrialMetrics(record.folder if record else self._folder / "deleted")
            trial_metrics.read()
            self._metrics[trial.number] = trial_metrics
        return self._metrics[trial.number]

    def _stop(self, trial: TrialFile, why: str) -> None:
        trial = self._save(replace(trial, state=TrialState.STOPPING, why=why))
        request_cancel(self._records[trial.number].folder)

    def _again(self, trial: TrialFile) -> None:
        """The same values once more: what ended the run had nothing to do with them."""
        del self._metrics[trial.number]
        request_cancel(self._records[trial.number].folder)
        again = replace(trial, state=TrialState.REQUESTED, run=None, attempt=trial.attempt + 1)
        self._begin(self._save(replace(again, goals={}, steps=0)))

    def _conclude(self, trial: TrialFile, ending: Ending) -> None:
        goals = dict(ending.goals or trial.goals)
        ended = replace(trial, state=ending.state, why=ending.why, goals=goals, end=time.time())
        self._save(ended)
        self._engine.tell(trial.number, self._outcome(ended))

    def _outcome(self, trial: TrialFile) -> Outcome:
        if not trial.state.final:
            return Outcome("running")
        if trial.state in _COUNT:
            rows = self._metrics_of(trial).rows(self._goals[0])
            points = tuple((step, value) for step, _, value in rows)
            values = tuple(trial.goals.get(goal, 0.0) for goal in self._goals)
            succeeded = trial.state is TrialState.SUCCEEDED
            return Outcome("succeeded" if succeeded else "stopped", values, points)
        return Outcome("failed")

    # -- the end ----------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Whether it is to end before its time; the first decision stands."""
        if self._ending is not None:
            return
        kernel = self._study.kernel
        if (self._folder / CANCEL_FILE).exists():
            self._ending = State.CANCELLED, ""
        elif kernel is not None and not kernel.alive:
            self._ending = State.CANCELLED, "the kernel that waited for it has ended"
        else:
            self._ending = self._failing()
        if self._ending is not None:
            self._enter(State.STOPPING)

    def _failing(self) -> tuple[State, str] | None:
        failed = [t for t in self._trials.values() if t.state is TrialState.FAILED]
        most = self._spec.max_failed
        if most and len(failed) >= most:
            return State.FAILED, f"{len(failed)} trials failed; the last: {failed[-1].why}"
        ended = [t for t in self._trials.values() if t.state.final]
        if len(failed) == len(ended) >= max(FAILED_AT_FIRST, self._spec.parallel):
            return State.FAILED, f"the first {len(failed)} trials failed: {failed[-1].why}"
        return None

    def _end(self) -> None:
        state, error = self._ending or (State.SUCCEEDED, "")
        if self._ending is None and not any(t.state in _COUNT for t in self._trials.values()):
            state, error = State.FAILED, "no trial has come to an end with a value"
        self._enter(state, error=error)
        self._launcher.end()

    def _enter(self, state: State, error: str = "") -> None:
        self._status = self._status.enter(state, str(state), error=error, note="")
        self._status.write(self._folder)


_COUNT = (TrialState.SUCCEEDED, TrialState.STOPPED)  # that say something of their values


def _begun(trial: TrialFile) -> TrialState:
    return TrialState.STOPPING if trial.state is TrialState.STOPPING else TrialState.RUNNING
