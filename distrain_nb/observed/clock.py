"""How long a thread had to wait for a processor: work on a busy machine isn't long for that."""

from __future__ import annotations

from pathlib import Path
from time import monotonic


def waited_s(process: int | None = None) -> float:
    """Return the seconds for which a thread could have run, and others had the processors: this
    thread, or the first one of a process. It is 0 where Linux doesn't count that.

    Source: `Documentation/scheduler/sched-stats.rst` of Linux, `/proc/<pid>/schedstat`.
    """
    of = "thread-self" if process is None else str(process)
    try:
        return int(Path("/proc", of, "schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def undisturbed() -> float:
    """Return a time in seconds that stands still while this thread waits for a processor."""
    return monotonic() - waited_s()
