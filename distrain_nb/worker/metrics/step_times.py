"""Where a rank's time goes: seconds of each step for data, computing, exchanging, saving, the rest.

One clock a process, of the thread that trains. At any moment it counts for one kind; hooks of the
frameworks (`rank/step_hooks.py`) and `timed` switch it. A step begins where the program asks for
its data or, in a program without a loader, where the optimizer's step ends. What follows the
optimizer's step counts as the rest; it is computing if another optimizer's step comes before the
next data.

Means over windows of growing length go to an event file of the rank, so that they travel from a
cloud as metrics do.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import Any, DefaultDict, Dict, Iterator, Optional, Set

from distrain_nb.worker.files.folder import STEP_TIMES_FOLDER, STEP_TIMES_VARIABLE
from distrain_nb.worker.metrics.gpu_work import GpuWork
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE, append

DATA, COMPUTE, EXCHANGE, SAVE, REST = KINDS = ("data", "compute", "exchange", "save", "rest")
STEPS, GRADIENT_BYTES, LOADER_WORKERS = FACTS = ("steps", "gradient bytes", "loader workers")
_SETUP = ""  # before the first step
_IDLE = (COMPUTE, REST, _SETUP)  # what data or an optimizer's step puts an end to
FIRST_WINDOW_S, LONGEST_WINDOW_S = 1.0, 16.0

_now = time.perf_counter


class Clock:
    """Counts seconds of the thread that has begun it; `thread` is 0 while nothing is measured."""

    def __init__(self) -> None:
        self.thread = 0
        self.workers = -1  # processes of the loader of PyTorch that was asked last
        self._kind = _SETUP
        self._since = 0.0
        self._seconds: DefaultDict[str, float] = defaultdict(float)
        self._closed = self._seconds  # of them, those up to the end of the last step
        self._rest_before = 0.0  # of this step, which no optimizer makes computing
        self._leads = ""  # the kind that begins a step
        self._stepped: Set[int] = set()  # optimizers, in this step
        self._optimizers: Dict[int, int] = {}  # bytes of gradients
        self._gpu = GpuWork()
        self._steps = self._all_steps = 0
        self._window, self._due = FIRST_WINDOW_S, 0.0
        self._folder = Path()

    def begin(self, folder: Path) -> None:
        """Measure this thread from its first step on, and write into that folder."""
        self.__init__()  # type: ignore[misc]
        self._folder, self.thread = folder, threading.get_ident()

    def end(self) -> None:
        """Write the last window, and measure no more. What followed its last step counts for none:
        an evaluation, or saving the model."""
        if self.thread == threading.get_ident() and self._steps:
            self._seconds = self._closed
            self._write()
        self.thread = 0

    def switch(self, kind: str) -> str:
        """Count for that kind from now on; return what was counted for."""
        now, before = _now(), self._kind
        self._seconds[before] += now - self._since
        self._since, self._kind = now, kind
        return before

    def enter(self, kind: str) -> str:
        """Switch to a kind that may begin a step, as data does."""
        before = self.switch(kind)
        if before == _SETUP:
            self._start()
        elif before == COMPUTE and kind == DATA:
            self._gpu.leave(self._since)
        if kind == DATA or not (self._leads or kind in (EXCHANGE, SAVE, REST)):
            self._leads = kind
        if kind == self._leads and before in _IDLE:
            # PyTorch's programs may fetch several batches before a step, as Accelerate does.
            optimizes = self._optimizers or self.workers >= 0
            if before != _SETUP and (self._stepped or not optimizes):
                self._close()
            self._rest_before = self._seconds[REST]
        return before

    def leave(self, before: str) -> None:
        """End what `enter` began: what comes after data is computing."""
        is_data = self._kind == DATA and before in _IDLE
        self.switch(COMPUTE if is_data or before == _SETUP else before)
        if is_data:
            self._gpu.return_(self._since)

    def optimized(self, optimizer: Any) -> None:
        """Note that an optimizer has taken its step."""
        if self._kind not in _IDLE:
            return
        if self.switch(REST) == _SETUP:
            self._start()
        self._gpu.leave(self._since)
        seconds, key = self._seconds, id(optimizer)
        seconds[COMPUTE] += seconds[REST] - self._rest_before
        seconds[REST] = self._rest_before
        if key not in self._optimizers:
            self._optimizers[key] = _gradient_bytes(optimizer)
        if key in self._stepped:
            self._close()
        self._stepped.add(key)

    def batch(self) -> None:
        """Note that a framework which fetches its data by itself begins a batch."""
        if self._kind == REST:
            self.switch(COMPUTE)
            self._gpu.return_(self._since)
            self._rest_before = self._seconds[REST]

    def exchanged(self, since: float) -> None:
        """Count the seconds from then (of `perf_counter`) until now as exchange."""
        began = max(since, self._since)
        kind = self.switch(self._kind)
        passed = max(0.0, self._since - began)
        self._seconds[kind] -= passed
        self._seconds[EXCHANGE] += passed

    def _start(self) -> None:
        self._seconds.clear()

    def _close(self) -> None:
        """End a step; now and then write those since the last time. The first one, which compiles
        and starts processes, is a window by itself."""
        self._stepped.clear()
        self._steps += 1
        if self._since >= self._due:
            self._write()
            self._due = self._since + self._window
            self._window = min(2 * self._window, LONGEST_WINDOW_S)
        else:
            self._closed = self._seconds.copy()

    def _count_gpu(self) -> None:
        """Count as computing what the GPU computed while the program was away. It goes on right
        after the optimizer's step; data comes last before the next, so it is hidden last."""
        computed = self._gpu.take()
        custom = [kind for kind in self._seconds if kind and kind not in KINDS]
        for kind in (REST, *custom, SAVE, DATA):
            hidden = min(computed, self._seconds[kind])
            self._seconds[kind] -= hidden
            self._seconds[COMPUTE] += hidden
            computed -= hidden

    def _write(self) -> None:
        self._count_gpu()
        steps, self._steps = self._steps, 0
        self._all_steps += steps
        numbers = dict.fromkeys(KINDS, 0.0)
        numbers.update((kind, total / steps) for kind, total in self._seconds.items() if kind)
        numbers[STEPS] = steps
        numbers[LOADER_WORKERS] = self.workers
        numbers[GRADIENT_BYTES] = sum(self._optimizers.values())
        self._seconds.clear()
        self._rest_before = 0.0
        try:
            append(self._folder, self._all_steps, numbers)
        except Exception:  # warnings may be errors; the program goes on, unmeasured
            self.thread = 0


CLOCK = Clock()
os.register_at_fork(after_in_child=lambda: setattr(CLOCK, "thread", 0))


def begin() -> bool:
    """Measure this rank from now on, and say whether it is: its metrics need a folder. A rank that
    stays begins anew with each run."""
    folder, rank = os.environ.get(FOLDER_VARIABLE), os.environ.get("RANK")
    if not folder or rank is None or os.environ.get(STEP_TIMES_VARIABLE) == "0":
        return False
    CLOCK.begin(Path(folder, STEP_TIMES_FOLDER, f"rank-{rank}"))
    return True


@contextmanager
def timed(kind: str) -> Iterator[None]:
    """Count the seconds of a block for a kind: `with distrain_nb.timed("data"): …`.

    `kind` is "data", "compute", "exchange", "save", "rest" or a name of your own, such as
    "tokenize". Decorates functions too. Does nothing outside a run, and in other threads than that
    which runs the program. Raises ValueError for a name that step times have for something else.
    """
    if not isinstance(kind, str) or not kind or kind in FACTS:
        raise ValueError(
            f"timed({kind!r}): expected one of {', '.join(KINDS)} or another name, but none of "
            f"{', '.join(FACTS)}"
        )
    if CLOCK.thread != threading.get_ident():
        yield
        return
    before = CLOCK.enter(kind)
    try:
        yield
    finally:
        CLOCK.leave(before)


def _gradient_bytes(optimizer: Any) -> int:
    """Return the bytes of the gradients that an optimizer of PyTorch reads; 0 for others."""
    groups: Optional[Any] = getattr(optimizer, "param_groups", None)
    try:
        weights = [p for group in groups or () for p in group["params"] if p.requires_grad]
        return sum(p.numel() * p.element_size() for p in weights)
    except Exception:
        return 0
