"""What the replicas of a large job would write, by one process, and the process that carries it.

`python -m benchmarks.thousand_ranks write JOB RANKS LINES` writes, into the folder of a job whose
replicas share one, what RANKS replicas of one rank each would: LINES lines a second each, a loss a
second, where the time of a step goes, facts of their training, states and failures. It does so
until `fail` appears there: then one rank fails, the others a little later, each by itself.
`written` has how many lines there are.

`python -m benchmarks.thousand_ranks carry RUN` carries the run as the process does that carries one
on Slurm, with a service that knows what lies in the folder, and no controller.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from distrain_nb.backends.remote.carrier import carry_cell
from distrain_nb.backends.remote.service import Observed
from distrain_nb.backends.remote.shared_folder import SharedFolderService, SharedSpec
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.places.slurm.backend import SlurmBackend
from distrain_nb.run import Run, Store
from distrain_nb.worker.facts.record import (
    COLLECTIVES,
    MODULE,
    WEIGHTS,
    FactRecord,
    packed,
    spans,
)
from distrain_nb.worker.files.cause import Cause
from distrain_nb.worker.files.disk import replace_file, without_waiting
from distrain_nb.worker.files.failure import Failure
from distrain_nb.worker.files.folder import EVENTS_FOLDER, FACTS_FOLDER, LOG_FILE, PROGRAM_FOLDER
from distrain_nb.worker.files.folder import STEP_TIMES_FOLDER as TIMES
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.status import Process, State, Status
from distrain_nb.worker.metrics import event_format, writer
from distrain_nb.worker.metrics.step_times import COMPUTE, DATA, EXCHANGE, REST, SAVE, STEPS
from distrain_nb.worker.replica import shared
from distrain_nb.worker.replica.replica import Replica

if TYPE_CHECKING:
    from distrain_nb.types import JsonObject

TICK_S, POINT_EVERY_S, WINDOW_S = 0.1, 1.0, 5.0
FAIL, WRITTEN = "fail", "written"
OTHERS_FAIL_WITHIN_S = 1.0
STEPS_A_SECOND, FACTS_A_WINDOW = 20, 48


def failing(ranks: int) -> int:
    """Return the rank that fails first."""
    return ranks * 3 // 4


def processes_of(ranks: int) -> tuple[Process, ...]:
    """Return the processes of the whole job."""
    first = Process(0, "rank 0", "primary", 0, 0)
    return (first, *(Process(n, f"rank {n}", "workers", n - 1, n) for n in range(1, ranks)))


def submit(store: Store, job: Path, ranks: int) -> Run:
    """Put the run on the list, with all that its carrier reads."""
    record = store.add(f"thousand-{ranks}", "slurm", "", f"--on slurm --workers {ranks}")
    (record.folder / PROGRAM_FOLDER).mkdir()
    (record.folder / PROGRAM_FOLDER / "main.py").write_text("pass\n")
    pools = f"primary=1,workers={ranks - 1}"
    spec = SharedSpec(folder=str(job), environment={shared.REPLICAS_VARIABLE: pools})
    Submission("slurm", asdict(spec), processes_of(ranks)).write(record.folder)
    return Run(record)


@dataclass(frozen=True)
class FolderService(SharedFolderService[SharedSpec]):
    """A job of which nobody knows more than its folder says."""

    def create(self, request: JsonObject) -> str:  # noqa: ARG002
        return "1"

    def find(self, request: JsonObject) -> str:  # noqa: ARG002
        return "1"

    def observe(self, job: str) -> Observed:  # noqa: ARG002
        return self.outcome() or Observed(State.RUNNING, reason=self.failing())

    def cancel(self, job: str) -> None: ...


def carry(folder: Path) -> None:
    carry_cell(folder, lambda raw: FolderService(SharedSpec.of(raw)), SlurmBackend.pace)


class WrittenReplica:
    """One replica, whose files this process writes in its place."""

    def __init__(self, job: Path, rank: int, addresses: tuple[str, ...]) -> None:
        self.rank = rank
        self._is_last = rank == len(addresses) - 1
        self.folder = shared.replica_folder(job, rank)
        self.folder.mkdir(parents=True)
        role, index = ("workers", rank - 1) if rank else ("primary", 0)
        launched = Replica(role, index, rank, addresses).processes(1, job.name)
        Launch(launched, "/").write(self.folder)
        process = Process(0, f"rank {rank}", role, index, rank, os.getpid())
        self.status = Status(State.STARTING).enter(State.RUNNING, processes=(process,))
        self.status.write(self.folder)
        mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.log = os.open(self.folder / LOG_FILE, mode, 0o644)
        events = job / shared.OUTPUT / EVENTS_FOLDER
        self._events = writer._EventFile(events / f"rank-{rank}")
        self._times = writer._EventFile(events / TIMES / f"rank-{rank}")
        self._facts = FactRecord()
        self._facts.begin(events / FACTS_FOLDER, rank, len(addresses))
        self._world = spans(range(len(addresses)))
        names = [f"layers.{n}.weight" for n in range(20)]
        self._facts.note(MODULE, of="module 0", ranks=self._world, names=names, shown="Net")

    def point(self, now: float, step: int) -> None:
        loss = math.exp(-step / 2000) + 0.01 * math.sin(self.rank + step)
        self._events.write(event_format.event(now, step, {"loss": loss}))

    def window(self, now: float, step: int, steps: int) -> None:
        """Write where the time of some steps went; those of the last rank compute longer."""
        more = 0.01 if self._is_last else 0.0
        kinds = {DATA: 0.004, COMPUTE: 0.03 + more, EXCHANGE: 0.012 - more, SAVE: 0.0, REST: 0.002}
        self._times.write(event_format.event(now, step, {**kinds, STEPS: steps}))
        calls = [
            (0, "0", number, "all_reduce", "41665", "float", "Cell In[1], line 9", True)
            for number in range(step - FACTS_A_WINDOW, step)
        ]
        self._facts.note(COLLECTIVES, groups={"0": self._world}, calls=calls, large=False)
        alike = packed(math.sin(step + n) for n in range(40))
        self._facts.note(WEIGHTS, of="module 0", step=step, weights=alike, gradients=alike)

    def fail(self, text: str) -> None:
        """End as a rank whose program has raised this does."""
        label, now = f"rank {self.rank}", time.time()
        traceback = f"Traceback (most recent call last):\n  Cell In[1], line 9\n    train()\n{text}"
        Failure(0, now, text, traceback).write(self.folder)
        error = f"{label} failed: {text}\n{traceback}"
        lines = "".join(f"{now:.3f}\t0\te\t{line}\n" for line in traceback.splitlines())
        os.write(self.log, lines.encode())
        cause = Cause(subject=label, summary=text)
        self.status.enter(State.FAILED, "failed", error=error, cause=cause).write(self.folder)


def write(job: Path, ranks: int, lines: int) -> None:
    """Write what such a job does, until it fails."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # three files stay open for each
    addresses = tuple(f"node{n:04d}.cluster:29500" for n in range(ranks))
    with without_waiting():
        replicas = [WrittenReplica(job, rank, addresses) for rank in range(ranks)]
        began = time.time()
        tick = written = 0
        while not (job / FAIL).exists():
            time.sleep(max(0.0, began + tick * TICK_S - time.time()))
            written += _tick(replicas, tick, lines)
            replace_file(job / WRITTEN, str(written).encode())
            tick += 1
        _fail(replicas)


def _tick(replicas: list[WrittenReplica], tick: int, lines: int) -> int:
    """Write a tick of each replica, and return how many lines that made."""
    now, step = time.time(), tick * STEPS_A_SECOND // 10
    first, beyond = (round(at * TICK_S * lines) for at in (tick, tick + 1))
    head = f"{now:.3f}\t0\to\t"
    data = "".join(
        f"{head}step {step} batch {n} loss {math.exp(-n / 4000):.6f} throughput 1234.5/s at "
        f"{now:.3f}\n"
        for n in range(first, beyond)
    ).encode()
    for replica in replicas:
        os.write(replica.log, data)
    if tick % round(POINT_EVERY_S / TICK_S) == 0:
        for replica in replicas:
            replica.point(now, step)
    if tick and tick % round(WINDOW_S / TICK_S) == 0:
        for replica in replicas:
            replica.window(now, step, round(WINDOW_S * STEPS_A_SECOND))
    return (beyond - first) * len(replicas)


def _fail(replicas: list[WrittenReplica]) -> None:
    """Have one fail, and the others of its absence, the nearest first."""
    first = replicas[failing(len(replicas))]
    first.fail("IndexError: list index out of range")
    others = [replica for replica in replicas if replica is not first]
    began = time.monotonic()
    for number, other in enumerate(others):
        due = began + 0.1 + OTHERS_FAIL_WITHIN_S * number / len(others)
        time.sleep(max(0.0, due - time.monotonic()))
        other.fail("RuntimeError: Connection closed by peer [10.0.0.1]:29500")


def main(what: str, folder: str, *numbers: str) -> None:
    if what == "write":
        write(Path(folder), *map(int, numbers))
    else:
        carry(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
