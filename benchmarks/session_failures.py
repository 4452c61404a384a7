"""Failures by chance in four ranks that stay: ours, jupyter-distributed, Monarch.

`python benchmarks/session_failures.py [COUNT [SECONDS [TOOL …]]]`; the last line is one JSON
object. Ours has COUNT failures, each rival as many of the same as fit into SECONDS. After each, the
ranks are asked for their names, and meet in a collective: see `Outcome` in
`tests/session/random_failures.py`. Ranks that can't meet, even once those that died are replaced,
are started anew. A rival that isn't installed is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("DISTRAIN_HOME", tempfile.mkdtemp(prefix="distrain-bench-"))

from benchmarks.machine import describe
from tests.session.random_failures import (
    DEATHS,
    RAISES,
    RANKS,
    STOPPED,
    USABLE_WITHIN_S,
    Failures,
    Ours,
    Outcome,
    Tool,
    Unusable,
)

SEED = 1
GROUPS = {"exceptions": RAISES, "stops": STOPPED, "deaths": DEATHS}


class Rival(Tool):
    """A tool whose ranks are below this process."""

    def __init__(self) -> None:
        self._own = {process.pid for process in psutil.Process().children(recursive=True)}

    def is_at_work(self) -> bool:
        return True

    def processes(self) -> int:
        below = psutil.Process().children(recursive=True)
        return sum(process.pid not in self._own for process in below)

    def _kill(self) -> None:
        """End what the tool's own end has left."""
        for process in psutil.Process().children(recursive=True):
            if process.pid not in self._own:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        psutil.wait_procs(psutil.Process().children(recursive=True), timeout=2)


class JupyterDistributed(Rival):
    """Its own Python interface, without a page."""

    title = "jupyter-distributed"
    starts_within_s = 60.0

    def __init__(self) -> None:
        from jupyter_distributed.kernel_group import DistributedKernelGroup

        super().__init__()
        self._new = DistributedKernelGroup
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._cell: Future[Any] = Future()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def start(self) -> None:
        self._group = self._new(RANKS)
        self._call(self._group.start()).result(self.starts_within_s)

    def begin(self, text: str) -> None:
        self._cell = self._call(self._group.execute(text))

    def has_ended(self) -> bool:
        return self._cell.done()

    def interrupt(self) -> None:
        self._call(self._group.interrupt()).result(self.starts_within_s)

    def printed(self) -> dict[int, str]:
        if self._cell.exception() is not None:
            raise Unusable(str(self._cell.exception()))
        ranks = self._cell.result().ranks
        texts = {r.rank: "\n".join(output.plain_text() for output in r.outputs) for r in ranks}
        failed = [r.rank for r in ranks if r.status != "ok"]
        if failed:
            raise Unusable(f"rank {failed[0]}: {texts[failed[0]][-300:]}")
        return texts

    def replace_dead(self) -> set[int]:
        """Return none: only all ranks can be started anew."""
        return set()

    def stop(self) -> None:
        with contextlib.suppress(Exception):
            self._call(self._group.shutdown(now=True)).result(10)
        self._kill()


class Monarch(Rival):
    """An actor in each process that executes the text of a cell in names of its own."""

    title = "Monarch"

    def __init__(self) -> None:
        import monarch.actor

        monarch.actor.this_host()  # starts processes that stay
        super().__init__()
        # Its own hook ends this process.
        monarch.actor.unhandled_fault_hook = lambda failure: None  # noqa: ARG005
        self._cell: Any = None
        self._answer: Any = None

    def start(self) -> None:
        from monarch.actor import this_host

        from benchmarks.monarch_cells import Cells

        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self._mesh = this_host().spawn_procs(per_host={"ranks": RANKS})
        self._cells = self._mesh.spawn("cells", Cells, RANKS, port)

    def begin(self, text: str) -> None:
        self._answer = None
        self._cell = self._cells.run.call(text)

    def has_ended(self) -> bool:
        if self._answer is None:
            try:
                self._answer = self._cell.get(timeout=0.05)
            except TimeoutError:
                return False
            except BaseException as error:
                self._answer = error
        return True

    def interrupt(self) -> None:
        """Do nothing: a call that has been sent can't be taken back."""

    def printed(self) -> dict[int, str]:
        if isinstance(self._answer, BaseException):
            raise Unusable(str(self._answer)[-300:])
        return {rank: text for _, (rank, text) in self._answer.items()}

    def replace_dead(self) -> set[int]:
        """Return none: only a whole mesh can be started anew."""
        return set()

    def stop(self) -> None:
        with contextlib.suppress(BaseException):
            self._mesh.stop().get(timeout=10)
        self._kill()


def fail(tool: Tool, count: int, seconds: float) -> list[Outcome]:
    """Fail so often, or for so long."""
    failures, outcomes = Failures(tool, SEED), list[Outcome]()
    until = time.monotonic() + seconds
    try:
        while len(outcomes) < count and time.monotonic() < until:
            outcomes.append(failures.fail(len(outcomes) + 1))
            if outcomes[-1].trouble:
                print(f"{tool.title}: {outcomes[-1].trouble}", flush=True)
    except Exception:  # a rival that can't be started again
        traceback.print_exc()
    finally:
        tool.stop()
    return outcomes


def figures(outcomes: list[Outcome]) -> dict[str, object]:
    """Return what some failures have cost, as numbers."""
    usable = sorted(o.usable_s for o in outcomes if o.usable_s is not None)
    late = len(outcomes) - sum(seconds <= USABLE_WITHIN_S for seconds in usable)
    words: dict[str, object] = {
        "failures": len(outcomes),
        "hung": sum(o.ended_s is None for o in outcomes),
        "unusable": sum(o.usable_s is None for o in outcomes),
        "names_lost": sum(o.lost > 0 for o in outcomes),
        "processes_left": sum(o.left > 0 for o in outcomes),
        "not_within_2_s": late,
    }
    if usable:
        words["p50_s"] = round(statistics.median(usable), 2)
        words["p95_s"] = round(usable[min(len(usable) - 1, int(len(usable) * 0.95))], 2)
        words["max_s"] = round(usable[-1], 2)
    return words


def main(count: int, seconds: float, chosen: list[str]) -> None:
    made = {
        "ours": lambda: Ours("failures"),
        "jupyter-distributed": JupyterDistributed,
        "monarch": Monarch,
    }
    result: dict[str, object] = {"machine": describe(), "ranks": RANKS}
    for name in chosen or made:
        try:
            tool = made[name]()
        except ImportError:
            continue
        outcomes = fail(tool, count, float("inf") if name == "ours" else seconds)
        result[name] = figures(outcomes)
        for group, kinds in GROUPS.items():
            same = [outcome for outcome in outcomes if outcome.kind in kinds]
            print(f"{name}, {group}: {figures(same)}", flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 200,
        float(sys.argv[2]) if len(sys.argv) > 2 else 600.0,
        sys.argv[3:],
    )
