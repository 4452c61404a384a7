"""Carries a run: its code to the service, and what the job says into the run's folder.

One process a run, which the kernel starts and which outlives it. All that it knows is on disk, so
that another one can go on when it has been killed. Once the service may have a job, nothing but
the service's own word ends the run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from distrain_nb import __version__
from distrain_nb.backends.cost_watch import CostWatch
from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote.attempts import attempt_label, prepare_request, start_next_attempt
from distrain_nb.backends.remote.carried import LONGEST_PAUSE_S, CarriedRun, error_line
from distrain_nb.backends.remote.collector import Collector, kinds
from distrain_nb.backends.remote.links import write_links
from distrain_nb.backends.remote.lock import NoLock, carrier_lock
from distrain_nb.backends.remote.run_prompts import RunPrompts
from distrain_nb.backends.remote.sending import Cancelled, send, stage
from distrain_nb.backends.remote.service import Gone, Observed, Pace, Service
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.backends.remote.variables import delete_variables
from distrain_nb.backends.remote.worker_reports import (
    HangNotes,
    ranks_alone_warning,
    saving,
    with_report,
)
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.status import State, request_cancel
from distrain_nb.worker.supervisor.deviating import DeviationReader, note_of

if TYPE_CHECKING:
    from distrain_nb.backends.remote.backend import AnyRemoteBackend
    from distrain_nb.backends.remote.rehearsal_step import RehearsalStep
    from distrain_nb.types import JsonObject

    # What is done, in words, and how.
    Step = tuple[str, Callable[[], object]]

_log = logging.getLogger(__name__)
_A_DAY_S = 24 * 3600.0
# A look begins so many seconds after the last one began, and a part of them after it ended: a rest
# of all of them let 1,024 ranks of 100 lines a second fall 3.6 s behind, as a look of 5 µs a line
# grows with the time since the last one.
_SHORTEST_REST = 0.1


def carry(
    folder: Path, endpoints: Mapping[str, str] | None = None, doing: RehearsalStep | None = None
) -> None:
    """Carry the run of that folder to its end, or fetch what was missing when it had ended;
    returns at once if another process does so.

    `endpoints` are those of a rehearsal's services, `doing` is what it says of itself.
    """
    _carry_alone(folder, endpoints or {}, doing)


def carry_cell(folder: Path, make: Callable[[JsonObject], Service], pace: Pace) -> None:
    """Carry the run of a session's cell to its end; `make` gives the service for its `Spec`."""
    _carry_alone(folder, {}, None, make, pace)


def _carry_alone(
    folder: Path,
    endpoints: Mapping[str, str],
    doing: RehearsalStep | None,
    make: Callable[[JsonObject], Service] | None = None,
    pace: Pace | None = None,
) -> None:
    try:
        with carrier_lock(folder) as mine:
            if mine:
                _carry(CarriedRun(folder, pace), endpoints, doing, make)
    except NoLock as error:
        give_up(CarriedRun(folder), error, ends_with_us=False)


def _carry(
    run: CarriedRun,
    endpoints: Mapping[str, str],
    doing: RehearsalStep | None,
    make: Callable[[JsonObject], Service] | None,
) -> None:
    if run.over and not run.journal.missing:
        return
    ends_with_us = False
    try:
        submission = Submission.read(run.folder)
        _log.info(
            "distrain-nb %s carries run %s to %s", __version__, run.folder.name, submission.backend
        )
        ends_with_us = submission.rehearse is not None
        if ends_with_us and not endpoints:
            return  # it went with its stand-in, and is not for the service itself
        if make is None:
            backend = cast("AnyRemoteBackend", find(submission.backend))
            run.pace = backend.pace.of(endpoints)
            service = backend.service(submission.spec, endpoints, run.folder)
        else:
            service = make(submission.spec)
        prompts = RunPrompts(run, submission, service) if make is None else None
        carrier = Carrier(run, submission, service, doing, prompts)
        carrier.fetch_again() if run.over else carrier.run()
    except Cancelled:
        run.end(State.CANCELLED)
    except Exception as error:
        give_up(run, error, ends_with_us)


def give_up(run: CarriedRun, error: Exception, ends_with_us: bool) -> None:
    """Let the run fail, unless its job may go on: then another process looks for it."""
    _log.error("can't go on", exc_info=error)
    if run.over:
        return
    if run.may_be_there and not ends_with_us:
        run.note(f"can't go on, will be tried again; the job is not touched: {error_line(error)}")
        return
    expected = isinstance(error, DistrainError)
    where = f"`%distrain logs {run.folder.name} --carrier` shows where"
    message = str(error) if expected else f"{type(error).__name__}: {error}\n{where}"
    run.end(State.FAILED, message)


class Carrier:
    """One run on its way, from its code to the service's last word."""

    def __init__(
        self,
        run: CarriedRun,
        submission: Submission,
        service: Service,
        doing: RehearsalStep | None = None,
        prompts: RunPrompts | None = None,
    ) -> None:
        self._run = run
        self._prompts = prompts
        self._submission = submission
        self._service = service
        self._doing = doing
        self._asked = self._linked = False
        self._cost = CostWatch(run.folder)
        self._deviations = DeviationReader(run.folder)
        self._billed: float | None = None

    @property
    def _which(self) -> str:
        return attempt_label(self._run, self._submission)

    def run(self) -> None:
        """Whatever is not yet done: stage, create, follow, fetch."""
        run = self._run
        run.kernel = self._submission.kernel
        run.take(self._submission.processes)
        is_sent_again, vain = True, ""
        while is_sent_again:
            prepare_request(run, self._submission, self._service)
            stage(run, self._service)
            if self._prompts:
                self._prompts.begin()
            send(run, self._service)
            if not self._submission.retries:
                delete_variables(run.folder)
            with closing(Collector(run, self._service)) as collector:
                observed, missing = self._to_its_end(collector)
                is_sent_again, vain = start_next_attempt(
                    run, self._submission, self._service, observed, collector
                )
            self._linked = False
        run.keep(replace(run.journal, missing=missing))
        error, cause = with_report(run, observed.state, observed.error)
        error = "\n".join(filter(None, (error, vain)))
        state, error = self._cost.ended(observed.state, error)
        note, warns = self._note(observed.state, missing)
        run.end(state, error, note, cause=cause, warns=warns)

    def _to_its_end(self, collector: Collector) -> tuple[Observed, dict[str, str]]:
        """Follow a job; return how it has ended, and what it left that could not be fetched."""
        observed = self._follow(
            ("fetch the job's lines", lambda: collector.allowed(collector.lines)),
            ("fetch event files", lambda: collector.allowed(collector.new_events)),
        )
        if self._prompts:
            self._prompts.end()
        self._cost.look(self._run.status, self._billed)
        succeeded = observed.state is State.SUCCEEDED
        if observed.state is State.FAILED:  # all that a large job has said may take minutes
            self._run.note(observed.error.partition("\n")[0])
        return observed, collector.all_of(kinds(results=succeeded), self._run.pace.fetch)

    def fetch_again(self) -> None:
        """Fetch what was missing when the run had ended, if the service has it now."""
        run = self._run
        with closing(Collector(run, self._service)) as collector:
            missing = collector.all_of(tuple(run.journal.missing), 0.0)
        run.keep(replace(run.journal, missing=missing))
        error, cause = with_report(run, run.status.state, run.status.error)
        note, warns = self._note(run.status.state, missing)
        status = replace(run.status, error=error, cause=cause or run.status.cause, progress=None)
        run.put(replace(status, note=note, warns=warns))

    def _note(self, state: State, missing: Mapping[str, str]) -> tuple[str, bool]:
        """Return what is to stand beside the last state, and whether that warns of a success."""
        folder, journal = self._run.folder, self._run.journal
        alone = ranks_alone_warning(folder) if state is State.SUCCEEDED else ""
        saved = "" if state is State.SUCCEEDED else saving(folder, journal).words
        deviating = note_of(self._deviations.compare())
        texts = (alone, saved, deviating, self._missing_note(missing))
        return "; ".join(filter(None, texts)), bool(alone)

    def _missing_note(self, missing: Mapping[str, str]) -> str:
        if not missing:
            return ""
        why = "; ".join(f"{kind}: {why}" for kind, why in missing.items())
        again = f"`%distrain attach {self._run.folder.name}` fetches them again"
        lost = "they went with the rehearsal"
        out = lost if self._submission.rehearse is not None else again
        return f"some of what the job left could not be fetched; {out}. Missing are {why}"

    def _follow(self, *steps: Step) -> Observed:
        """Take these steps at each look until the service says that the job has ended. A service
        that can't be reached is asked again, more and more seldom."""
        run, pause, reason = self._run, self._run.pace.look, ""
        standstill = HangNotes(run.folder)
        while True:
            request, began = run.last_request(), time.monotonic()
            try:
                observed = self._observe()
            except Exception as error:
                trouble = f"can't reach the service, trying again: {error_line(error)}"
                run.note(trouble, error)
            else:
                run.rename(observed.processes)
                if observed.state.final:
                    return observed
                if observed.reason != reason and not self._asked:
                    run.note(waiting_reason(observed))  # a large job's lines may take seconds
                reason = observed.reason
                trouble, behind = self._do_what_can_be_done(steps)
                hang = "" if self._asked else standstill.hang()
                state = "" if self._asked else waiting_reason(observed)
                if self._prompts and not self._asked:
                    state = self._prompts.note or state
                if not state and hang:
                    state = hang
                if not state and not self._asked:
                    state = note_of(self._deviations.look())
                run.note(trouble or state, behind, hang=hang)
                self._see(observed)
            pause = min(2 * pause, LONGEST_PAUSE_S) if trouble else run.pace.look
            rest = max(pause * _SHORTEST_REST, began + pause - time.monotonic())
            run.rest(rest, request, self._prompts.attend if self._prompts else lambda: None)

    def _observe(self) -> Observed:
        try:
            observed = self._service.observe(self._run.journal.job)
            first = self._run.journal.attempt.number == 1  # of others nobody adds them up
            self._billed = observed.billed if first else None
            return observed
        except Gone as error:
            if self._run.may_arrive:
                raise
            stopped = self._asked or self._run.stop_wanted()
            return Observed(State.CANCELLED if stopped else State.FAILED, error=str(error))

    def _do_what_can_be_done(self, steps: Sequence[Step]) -> tuple[str, Exception | None]:
        """Return each step by itself; what went wrong in the first that did, in words, and its
        error."""
        trouble: str = ""
        behind: Exception | None = None
        for doing, step in (
            ("keep to --max-cost", self._keep_to_cost),
            ("stop the job", self._stop_if_wanted),
            ("say where the job is", self._link),
            ("pass on what ranks ask", self._pass_on),
            *steps,
        ):
            try:
                step()
            except Exception as error:
                if not trouble:
                    trouble, behind = f"can't {doing}, trying again: {error_line(error)}", error
        return trouble, behind

    def _keep_to_cost(self) -> None:
        if self._cost.look(self._run.status, self._billed) and not self._asked:
            request_cancel(self._run.folder)

    def _stop_if_wanted(self) -> None:
        if not self._asked and self._run.stop_wanted():
            self._service.cancel(self._run.journal.job)
            _log.info("asked for the job to be stopped")
            self._asked = True

    def _pass_on(self) -> None:
        if self._prompts:
            self._prompts.turn()

    def _link(self) -> None:
        if not self._linked:
            write_links(self._service.links(self._run.journal.job), self._run.folder)
            self._linked = True

    def _see(self, observed: Observed) -> None:
        state = State.STOPPING if self._asked else observed.state
        step = self._doing.before(state) if self._doing else None
        phase = step.phase if step else phase_of(observed, state) + self._which
        status = self._run.status
        entered = status.reach(phase) if state is status.state else status.enter(state, phase)
        self._run.put(replace(entered, progress=step))


def phase_of(observed: Observed, state: State) -> str:
    """Return the phase in words, with its attempt if that isn't the first."""
    phase = observed.phase or str(state)
    return phase if observed.attempt < 2 else f"{phase}, attempt {observed.attempt}"


def waiting_reason(observed: Observed) -> str:
    """Return why a job is where it is, and when it is expected to start, in words."""
    now = time.time()
    start = ""
    if observed.expected > now:
        form = "%H:%M" if observed.expected < now + _A_DAY_S else "%H:%M on %-d %B"
        start = time.strftime(f"expected to start at {form}", time.localtime(observed.expected))
    return "; ".join(filter(None, (observed.reason, start)))
