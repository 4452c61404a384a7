"""How long a GPU still computes while the program does something else, by CUDA's events.

A program hands work to the GPU and goes on: it waits in `loss.item()`, or fetches the next batch
while the GPU is busy. Such seconds cost nothing, or are the GPU's. An event at the moment the
program leaves its computing, and one when it returns, say how long the GPU was idle between; the
program was away for longer, and the rest of that time the GPU has computed. Nothing waits for an
event: those that the GPU has not reached are read later.

Events go to a GPU that the program has used: one on another would take half a gigabyte of it.

Tried with PyTorch 2.11 and CUDA 13 on an H100 (`benchmarks/gpu.py`), with several GPUs not.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, Deque, Optional, Tuple

_MOST_PENDING = 4096  # steps that a GPU may be behind


class GpuWork:
    """Counts the seconds of the GPU's work in which the program is away; none without CUDA."""

    def __init__(self) -> None:
        self._left: Optional[Tuple[Any, float]] = None
        self._absences: Deque[Tuple[Any, Any, float]] = deque(maxlen=_MOST_PENDING)
        self._device = -1
        self._is_off = False

    def leave(self, now: float) -> None:
        """Note that the program has handed over its work, at a time in seconds."""
        event = self._record()
        self._left = (event, now) if event is not None else None

    def return_(self, now: float) -> None:
        """Note that it computes again, at a time in seconds."""
        start, self._left = self._left, None
        event = self._record() if start else None
        if start and event is not None:
            self._absences.append((start[0], event, now - start[1]))

    def take(self) -> float:
        """Return the seconds since the last call in which the GPU has computed without it."""
        seconds = 0.0
        try:
            while self._absences and not _is_capturing() and self._absences[0][1].query():
                start, end, away = self._absences.popleft()
                seconds += max(0.0, away - start.elapsed_time(end) / 1000)
        except Exception:  # an error of a kernel comes up at any call: it is the program's to see
            self._is_off = True
        return seconds

    def _record(self) -> Any:
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        try:
            if self._is_off or cuda is None or not cuda.is_initialized() or _is_capturing():
                return None
            if self._device < 0:
                self._device = _device_in_use()
            if self._device < 0:
                return None
            event = cuda.Event(enable_timing=True)
            event.record(cuda.current_stream(self._device))
        except Exception:  # or another version of PyTorch
            self._is_off = True
            return None
        return event


def _is_capturing() -> bool:
    """Return whether calls become part of a CUDA graph, or of what `torch.compile` reads."""
    torch: Any = sys.modules["torch"]
    return bool(torch.compiler.is_compiling() or torch.cuda.is_current_stream_capturing())


def _device_in_use() -> int:
    """Return the number of a GPU that this process has a context on, the current one first; -1
    where there is none. A program may name `cuda:1` and leave 0 the current one."""
    torch: Any = sys.modules["torch"]
    current = torch.cuda.current_device()
    devices = (current, *range(torch.cuda.device_count()))
    return next((d for d in devices if torch._C._cuda_hasPrimaryContext(d)), -1)
