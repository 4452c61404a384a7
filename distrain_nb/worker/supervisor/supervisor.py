"""Sees a run on this machine to its end: starts its processes, or hands a cell to those of a
session; keeps their log, and decides how it ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from distrain_nb.worker.files import disk, failure, prompts, reserve
from distrain_nb.worker.files.cause import Cause
from distrain_nb.worker.files.failure import Failure, Memory
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.log import LogLost
from distrain_nb.worker.files.status import Ending, Owner, Process, State, Status
from distrain_nb.worker.machine import ports
from distrain_nb.worker.machine.memory import out_of_memory_kills
from distrain_nb.worker.metrics.resources import Sampler
from distrain_nb.worker.rank import stopping
from distrain_nb.worker.supervisor import primary
from distrain_nb.worker.supervisor.child import Child, Launcher
from distrain_nb.worker.supervisor.crew import Crew
from distrain_nb.worker.supervisor.grace import Grace
from distrain_nb.worker.supervisor.intervals import (
    DELETED_AFTER_S,
    DRAIN_S,
    FAILED_RANK_ENDS_WITHIN_S,
    LAST_STATUS_WITHIN_S,
    LOOK_EVERY_S,
    OTHERS_FAIL_WITHIN_S,
    PRIMARY_ENDS_WITHIN_S,
    REDUCERS_END_WITHIN_S,
    TURN_S,
)
from distrain_nb.worker.supervisor.output import Output
from distrain_nb.worker.supervisor.retries import Retries
from distrain_nb.worker.supervisor.start import processes_of
from distrain_nb.worker.supervisor.stray_events import StrayEvents, stray_events
from distrain_nb.worker.supervisor.time_limit import NEVER, TimeLimit
from distrain_nb.worker.supervisor.watches import Watches

ENDED_BY_SIGNAL = frozenset([-signal.SIGTERM, stopping.STOPPED])

# Who says in the log what no process of the run can: as services do in theirs.
SERVICE = Process(-1, "service", "service", 0)


class Supervisor:
    """One run, from its launch file to its last status; `echo` is given the log's records, `crew`
    has its ranks."""

    def __init__(
        self,
        folder: Path,
        echo: Optional[Callable[[bytes], None]] = None,
        crew: Optional[Crew] = None,
    ) -> None:
        self._folder = folder
        self._crew = crew or Crew()
        self._echo = echo
        self._launch = Launch.read(folder)
        self._status = Status.read(folder)
        self._saved: Optional[Status] = self._status
        self._retries = Retries(folder, self._launch)
        self._began = time.monotonic()
        self._begin()
        self._cancel = False
        self._look_at = 0.0
        self._place = disk.DeletableFolder(folder)
        self._primary = primary.followed_primary(self._launch.follows)
        self._endless_roles = primary.endless_roles(self._launch.processes, self._primary)
        self._held = ports.listen(self._launch.holds) if self._launch.holds else None

    def _begin(self) -> None:
        """Know nothing yet of an attempt."""
        now = time.monotonic()
        prompts.forget(self._folder)
        self._limit = TimeLimit(self._folder, self._launch, now - self._began)
        self._children: List[Child] = []
        self._failures: List[Failure] = []
        self._cut: List[str] = []
        self._ending: Optional[Ending] = None
        self._judge_at = self._terminate_at = self._kill_at = NEVER
        self._failed_at: Dict[int, float] = {}
        self._grace = Grace(self._folder, self._launch, self._children)
        self._memory_kills = out_of_memory_kills()
        self._ports: List[ports.HeldPort] = []
        self._sampler: Optional[Sampler] = None
        self._stray_events: Optional[StrayEvents] = None
        self._watches: Optional[Watches] = None
        self._note = self._hang = ""

    def run(self) -> None:
        """Start the processes and see them, and all that they have started, to their end."""
        self._crew.take_signals(self._on_terminate, self._on_notice)
        # Written when the processes have been started: till then who took the run answers for it.
        self._status = replace(self._status, supervisor=Owner.of(os.getpid()))
        output = Output(self._folder, self._echo)
        output.wake_by(self._crew.wakeup())
        output.tell = partial(self._say, output)
        if self._cancel_requested():
            self._ending = Ending(State.CANCELLED)
        while not self._ending:
            self._start(output)
            self._watch(output)
            has_saved = self._grace.has_saved_ahead(self._ending) and not self._cancel_requested()
            is_stopped = self._cancel_requested() or prompts.is_quit(self._folder)
            failed = self._ending == Ending(State.FAILED) and not is_stopped
            if (failed or has_saved) and self._retries.go_on(self._failures, has_saved=has_saved):
                self._try_again(output)
        self._end(output)

    def _try_again(self, output: Output) -> None:
        """Say why, and wait a moment."""
        words = self._retries.after(self._failures, self._status.processes)
        self._begin()
        self._retries.forget()
        self._say(output, words)
        self._enter(State.STARTING, words)
        until = time.monotonic() + self._retries.attempt.pause
        while time.monotonic() < until and not self._ending:
            output.turn(TURN_S)
            self._keep_time()

    def _on_terminate(self, *_: Any) -> None:
        self._cancel = True

    def _on_notice(self, *_: Any) -> None:
        self._limit.notice()

    def _cancel_requested(self) -> bool:
        asked = self._cancel or self._crew.is_ending
        return asked or (self._folder / CANCEL_FILE).exists()

    def _start(self, output: Output) -> None:
        self._ports = [ports.HeldPort() for _ in range(self._launch.ports)]
        numbers = [port.number for port in self._ports]
        self._children += self._crew.start(self._folder, self._retries.launch(), numbers, output)
        processes = tuple(
            Process(index, spec.label, spec.role, spec.replica, spec.rank, child.pid)
            for child in self._children
            for index, spec in child.specs.items()
        )
        processes += self._status.processes[len(processes) :]
        self._enter(State.RUNNING, f"running{self._retries.which}", processes=processes)
        self._crew.note_begin()
        output.serve()
        sampled = list(chain.from_iterable(map(processes_of, self._children)))
        self._sampler = Sampler(self._folder, sampled, began=self._began)
        self._sampler.start()
        self._stray_events = stray_events(self._launch, self._children)
        self._watches = Watches(self._folder, self._launch, self._children, output)

    def _watch(self, output: Output) -> None:
        while any(child.alive for child in self._children):
            try:
                output.turn(min(TURN_S, max(0.0, self._judge_at - time.monotonic())))
            except LogLost as lost:
                self._decide(State.FAILED, str(lost))
            for child, status, peak in self._crew.ends():
                self._judge_exit(child, status, peak)
            self._keep_time()
            self._look_at_ranks()
            self._hear_doctor(output)
            self._save(note=output.trouble or self._limit.note or self._note, hang=self._hang)
        self._ending = self._ending or Ending(State.FAILED)
        self._ports.clear()
        if self._watches:
            self._watches.end()
        if self._sampler:
            self._sampler.end()
        self._crew.kill_rest()
        output.drain(DRAIN_S)
        self._crew.finish(output)
        output.end_streams()
        if self._stray_events:
            self._stray_events.finish()
        if self._watches:
            self._ending = self._watches.finish(self._ending, output.tell)
        self._say_what_was_cut(output)

    def _hear_doctor(self, output: Output) -> None:
        """Log what the watches have to say, and note what they have said last."""
        if self._watches and self._ending is None:
            self._note, self._hang = self._watches.tell(output.tell), self._watches.hang
            if self._watches.stop_reason:
                self._decide(State.FAILED, self._watches.stop_reason)

    def _service(self) -> int:
        """Return the number in the log of what no process of the run says."""
        index = next((p.index for p in self._status.processes if p.role == SERVICE.role), None)
        if index is None:
            index = len(self._status.processes)
            self._save(processes=(*self._status.processes, replace(SERVICE, index=index)))
        return index

    def _judge_exit(self, child: Child, status: int, peak: int) -> None:
        by_others = status == -signal.SIGKILL and time.monotonic() < self._kill_at
        if status == 0:
            outcome = "succeeded"
        elif child.signalled and not by_others and (self._ending or status in ENDED_BY_SIGNAL):
            outcome = "stopped"
            if not self._ending:
                self._decide(*self._grace.ending)
            elif self._ending.state is State.SUCCEEDED and not child.roles <= self._endless_roles:
                self._cut += [spec.label for spec in child.specs.values()]
        else:
            outcome = self._note_failure(child, status, peak)
        self._set_outcome(child, outcome)
        if not self._ending and not self._failures and self._primary_has_ended():
            self._let_others_finish()
        if self._ending:
            self._end_reducers()

    def _note_failure(self, child: Child, status: int, peak: int) -> str:
        out_of_memory = out_of_memory_kills() > self._memory_kills
        words = [w for w in (failure.read(self._folder, i) for i in child.specs) if w is not None]
        if isinstance(child, Launcher):
            words.append(failure.of_launcher(status) if words else child.failed(status))
        if not words:
            memory = self._sampler.memory_of(child.pid, peak) if self._sampler else Memory(peak)
            words = [failure.of_exit(min(child.specs), status, out_of_memory, memory)]
        self._failures += words
        wait = PRIMARY_ENDS_WITHIN_S if self._primary else OTHERS_FAIL_WITHIN_S
        self._judge_at = min(self._judge_at, time.monotonic() + wait)
        return "stopped" if isinstance(child, Launcher) else words[0].summary

    def _say_what_was_cut(self, output: Output) -> None:
        for label in self._cut:
            self._say(
                output,
                f"{label} was still running {self._launch.grace:g} s after the primary had ended, "
                "and was stopped: what it had not printed or saved is lost",
            )
        for sentence in self._crew.remarks():
            self._say(output, sentence)

    def _say(self, output: Output, text: str) -> None:
        """Have it in the log as no process's of the run."""
        output.say(self._service(), text)

    def _set_outcome(self, child: Child, outcome: str) -> None:
        def ended(process: Process) -> Process:
            if process.index not in child.specs:
                return process
            word = failure.read(self._folder, process.index)
            return replace(process, outcome=word.summary if word else outcome)

        self._save(processes=tuple(ended(p) for p in self._status.processes))

    def _primary_has_ended(self) -> bool:
        """Tell whether the primary has ended or, where it runs elsewhere, all that run here."""
        leading = [c for c in self._children if "primary" in c.roles and not self._launch.in_turn]
        return not any(child.alive for child in leading or self._children)

    def _let_others_finish(self) -> None:
        """Give workers the grace period after the primary has succeeded; stop servers at once."""
        agreed = self._grace.has_agreed
        self._ending = self._grace.ending if agreed else Ending(State.SUCCEEDED)
        if living := [child for child in self._children if child.alive]:
            self._enter(State.STOPPING, "the primary has ended: the others may finish")
        for child in living:
            if child.roles <= primary.SERVING_ROLES - {primary.REDUCERS}:
                child.terminate()
        self._terminate_at = time.monotonic() + self._launch.grace

    def _end_reducers(self) -> None:
        """End the reducers when nobody is left to sum for."""
        living = [child for child in self._children if child.alive]
        if all(child.roles == {primary.REDUCERS} for child in living):
            for child in living:
                if not child.signalled:
                    child.terminate()
            if self._ending and self._ending.state is State.SUCCEEDED:
                self._terminate_at, self._kill_at = NEVER, time.monotonic() + REDUCERS_END_WITHIN_S

    def _decide(self, state: State, reason: str, kind: str = "") -> None:
        """Stop everything; the first decision stands."""
        if self._ending is None:
            self._ending = Ending(state, reason, kind)
            self._enter(State.STOPPING, "stopping")
            self._terminate_at = time.monotonic()

    def _keep_time(self) -> None:
        now = time.monotonic()
        self._hold(self._limit.paused())
        if self._cancel_requested():  # perhaps because of what has failed, by who starts all hosts
            self._decide(State.FAILED if self._failures else State.CANCELLED, "")
        if self._launch.kernel and not self._launch.kernel.alive:
            self._decide(State.CANCELLED, "the kernel that waited for it has ended")
        # Nobody can see or stop the run then; who hears its log has other means.
        if self._echo is None and self._place.away() > DELETED_AFTER_S:
            self._decide(State.CANCELLED, "its folder has been deleted")
        is_over, too_long = self._limit.passed()
        if is_over:
            self._decide(State.FAILED, too_long)
        if self._primary and self._primary.has_ended():
            self._decide(State.SUCCEEDED, "")
        if now >= self._judge_at:
            self._decide(State.FAILED, "")
        if self._limit.takes_notice():
            self._give_notice()
        if now >= self._terminate_at:
            self._terminate(now)
        if self._grace.has_saved:
            self._decide(*self._grace.ending)
            self._grace.end()
            self._terminate_at, self._kill_at = NEVER, min(self._kill_at, now + self._launch.grace)
        if now >= self._kill_at:
            self._kill_living()

    def _hold(self, seconds: float) -> None:
        """Put off for so long what would end a rank at whose prompt somebody sits."""
        self._judge_at += seconds
        self._failed_at = {pid: at + seconds for pid, at in self._failed_at.items()}
        if self._ending and self._ending.state is State.SUCCEEDED and not self._cancel_requested():
            self._terminate_at += seconds
            self._kill_at += seconds

    def _give_notice(self) -> None:
        """Ask the program to save ahead of the time limit, if it can be asked."""
        if not self._ending:
            phase = "saving ahead of the time limit" if self._grace.ask(ahead=True) else ""
            self._status = self._status.reach(phase or "near the time limit, without on_stop")

    def _terminate(self, now: float) -> None:
        """Ask those to end that handle it, or else all."""
        self._terminate_at = NEVER
        if not self._failures and (self._grace.ask() or self._grace.is_open):
            self._kill_at = self._grace.until
            self._status = self._status.reach("waiting for the program to end")
        else:
            self._grace.end()
            self._kill_at = now + self._launch.grace

    def _look_at_failed(self, now: float) -> None:
        """End the run for a process that has failed and doesn't end."""
        for child in filter(lambda child: child.alive and not self._ending, self._children):
            words = [w for w in (failure.read(self._folder, i) for i in child.specs) if w]
            failed_at = self._failed_at.setdefault(child.pid, now) if words else now
            if now - failed_at > FAILED_RANK_ENDS_WITHIN_S:
                self._failures += words
                self._decide(State.FAILED, "")

    def _look_at_ranks(self) -> None:
        """Look now and then at what has failed."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            self._look_at_failed(now)

    def _kill_living(self) -> None:
        for child in self._children:
            if child.alive:
                child.kill()

    def _end(self, output: Output) -> None:
        state, error, kind = self._ending or Ending(State.FAILED)
        cause = Cause(kind) if kind else None
        lost = output.close()
        charts = self._stray_events.passed_over() if self._stray_events else ""
        note = (self._watches.last_note(state) if self._watches else "") or charts
        if lost:
            note = f"the last {lost} bytes of the log were lost: {output.trouble}"
        note = self._grace.words(state is State.SUCCEEDED) or note
        if self._failures and state is State.FAILED:
            failures = [f.because(output.assertions.get(f.process, "")) for f in self._failures]
            ranks = self._status.processes[: len(self._launch.processes)]
            error = self._retries.with_no_retry_reason(failure.report(failures, ranks))
            cause = failure.cause_among(failures, ranks)
        alone = self._watches is not None and self._watches.warns and not lost
        warns = alone or self._grace.ended_by_itself(state is State.SUCCEEDED)
        self._enter(state, str(state), error=error, note=note, cause=cause, warns=warns)
        give_up_at = time.monotonic() + LAST_STATUS_WITHIN_S
        while self._status != self._saved and time.monotonic() < give_up_at:
            time.sleep(TURN_S)
            self._save()
        reserve.give_up_reserve(self._folder)

    def _enter(self, state: State, phase: str, **changes: Any) -> None:
        self._status = self._status.enter(state, phase, **changes)
        self._save()

    def _save(self, **changes: Any) -> None:
        """Write the status if it has changed; if the disk won't have it, try again next turn."""
        self._status = replace(self._status, **changes)
        if self._status != self._saved:
            with suppress(OSError):
                self._status.write(self._folder)
                self._saved = self._status
