"""Notices that a run makes no progress, and says where its ranks are. It stops nothing.

A run is looked at when it has printed and reported nothing for `--hang-after` seconds, and longer
than twice what it has been silent for before. A look takes a few seconds, in a thread of its own:
ranks write their stacks (`rank/stacks.py`), and /proc says whether they get anywhere.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from distrain_nb.worker.files import marks, prompts
from distrain_nb.worker.files.coded_line import GOES_ON, HANG, CodedLine
from distrain_nb.worker.files.folder import EVENTS_FOLDER, PROGRAM_FOLDER
from distrain_nb.worker.files.launch import ProcessSpec
from distrain_nb.worker.machine.gpus import Gpus
from distrain_nb.worker.rank import stacks
from distrain_nb.worker.supervisor.acts import doing
from distrain_nb.worker.supervisor.child import Child, Launcher
from distrain_nb.worker.supervisor.looks import RankProcess, observe_ranks
from distrain_nb.worker.supervisor.output import Output
from distrain_nb.worker.supervisor.verdict import Verdict, judge

USUAL = 2.0  # times the longest silence so far
PATIENCE_ELSEWHERE = 4.0  # times `--hang-after`: what other machines and servers do isn't seen
CONFIRMED_AFTER_S, LOOK_AGAIN_S = 5.0, 20.0
OF_PROGRAMS = ("primary", "workers", "evaluators")


class HangWatch:
    """Watches one run's ranks on this machine. `hang` says that it makes no progress, and why;
    `note` says for how long, too. Both are empty while it goes on."""

    def __init__(self, folder: Path, children: Sequence[Child], output: Output) -> None:
        self._folder = folder
        self._output = output
        program = folder / PROGRAM_FOLDER
        self._after = stacks.hang_after(program)
        self._stops = bool(stacks.setting(program, stacks.STOP_VARIABLE))
        self.stop_reason = ""  # of a run that is to be stopped: its error, which no note repeats
        self._ranks = [(child, i, spec) for child in children for i, spec in child.specs.items()]
        self._ranks = [entry for entry in self._ranks if entry[2].role in OF_PROGRAMS]
        self._elsewhere = _world([spec for _, _, spec in self._ranks]) > len(self._ranks)
        self._lines: List[str] = []
        self._sign = self._look_at = self._usual = self._well = 0.0
        self._gpus: Optional[Gpus] = None
        self._written, self._has_begun = 0, False
        self._kinds: Tuple[Tuple[str, str], ...] = ()
        self.note = self.hang = ""
        self._is_over = threading.Event()

    def end(self) -> None:
        """Watch no more: the ranks of a session outlive their run."""
        self._is_over.set()

    def start(self) -> HangWatch:
        """Watch for as long as this process lives; not without /proc, or if it was never to."""
        if self._after > 0 and os.path.isdir("/proc/self") and self._ranks:
            threading.Thread(target=self._run, name="hangs", daemon=True).start()
        return self

    def tell(self, say: Optional[Callable[[str], None]]) -> str:
        """Say what the log is to have, once each; return `note`, or nothing once the run is to be
        stopped. Not called by the thread."""
        while self._lines and say:
            say(self._lines.pop(0))
        return "" if self.stop_reason else self.note

    def _run(self) -> None:
        self._sign, is_first = time.monotonic(), True
        while any(child.alive for child, _, _ in self._ranks):
            if self._is_over.wait(min(1.0, self._after / 4)):
                return
            if is_first:  # the ranks begin before GPUs are looked for
                self._gpus, is_first = Gpus.open(), False
            try:
                self._turn()
            except Exception:  # no descriptor is free, a disk is full: another time
                traceback.print_exc()  # into the supervisor's own log

    def _turn(self) -> None:
        now, sign = time.monotonic(), self._last_sign()
        if sign > self._sign:
            self._usual = max(self._usual, sign - self._sign if self._has_begun else 0.0)
            self._has_begun = True
            self._goes_on(sign - self._sign)
            self._sign, self._look_at = sign, sign + self._after
        if now - self._sign < self._after or now < self._look_at:
            return
        ranks, moved = observe_ranks(self._folder, list(self._members()), self._gpus)
        acts = [doing(rank) for rank in ranks]
        verdict = None if moved else judge(acts, self._elsewhere)
        if moved:  # it steps without a word: that is life too
            self._goes_on(time.monotonic() - self._sign)
            self._sign = time.monotonic()
        self._consider(verdict, tuple((act.label, act.kind) for act in acts))

    def _last_sign(self) -> float:
        """Return when the run last printed, or wrote an event file."""
        if prompts.stands_still(self._folder):  # whoever sits there knows that it stands still
            self._output.heard_at = time.monotonic()
        if time.monotonic() - self._output.heard_at < self._after / 2:
            return self._output.heard_at
        written = _bytes_below(self._folder / EVENTS_FOLDER)
        if written != self._written:
            self._written, self._output.heard_at = written, time.monotonic()
        return max(self._output.heard_at, self._sign)

    def _consider(self, verdict: Optional[Verdict], kinds: Tuple[Tuple[str, str], ...]) -> None:
        again = kinds == self._kinds
        self._kinds = kinds if verdict else ()
        now = time.monotonic()
        silent = now - self._sign
        if verdict is None:
            self._goes_on(silent)
            self._well = now
            self._look_at = now + max(self._after / 4, min(silent / 4, LOOK_AGAIN_S))
        elif verdict.certain or (again and self._is_long(now, verdict)):
            if not self.note:
                silence = f"silent for {_duration(silent)}"
                text = f"the run makes no progress: {verdict.text} ({silence})"
                self._lines.append(str(CodedLine(HANG, text)))
            why = f"no progress for {_duration(silent)}: {verdict.text}"
            self.note, self.hang = f"it has made {why}", f"it makes no progress: {verdict.text}"
            if self._stops and not verdict.elsewhere:
                self.stop_reason = f"stopped by --stop-when-hung: it had made {why}"
            self._look_at = now + LOOK_AGAIN_S
        else:
            self._look_at = now + min(self._after / 4, CONFIRMED_AFTER_S)

    def _is_long(self, now: float, verdict: Verdict) -> bool:
        """Say whether the silence is long enough for a verdict that may be wrong.

        What comes from elsewhere by fits and starts may have come since the last sign.
        """
        since_well = now - max(self._sign, self._well)
        if verdict.elsewhere and since_well <= PATIENCE_ELSEWHERE * self._after:
            return False
        return now - self._sign > USUAL * self._usual

    def _goes_on(self, silent: float) -> None:
        if self.note:
            text = f"the run goes on after {_duration(silent)} of silence"
            self._lines.append(str(CodedLine(GOES_ON, text)))
        self.note = self.hang = ""

    def _members(self) -> Iterator[RankProcess]:
        for child, index, spec in self._ranks:
            pid = child.pid if child.alive else None
            if isinstance(child, Launcher):
                pid = marks.pid_of(self._folder, index)
            yield RankProcess(spec.label, index, pid, {**os.environ, **spec.environment})


def _world(specs: Sequence[ProcessSpec]) -> int:
    sizes = [spec.environment.get("WORLD_SIZE", "") for spec in specs]
    return max([int(size) for size in sizes if size.isdigit()], default=len(specs))


def _bytes_below(folder: Path) -> int:
    files = (Path(top) / name for top, _, names in os.walk(folder) for name in names)
    return sum(os.stat(file).st_size for file in files)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
