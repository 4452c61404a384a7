"""Runs in a store, written as real ones are."""

from __future__ import annotations

import time

from distrain_nb.run import Run, Store
from distrain_nb.worker.files.log import LineSplitter, LogWriter
from distrain_nb.worker.files.status import Process, State, Status


def stored_run(
    store: Store, text: str = "", state: State = State.SUCCEEDED, name: str = "stored"
) -> Run:
    """A run of two ranks of pool `workers` that has ended; rank 0 has printed `text`."""
    record = store.add(name, "local", "", "")
    processes = tuple(Process(n, f"rank {n}", "workers", n, n) for n in range(2))
    status = Status(State.RUNNING, times={"running": time.time()}, processes=processes)
    status.enter(state, str(state)).write(record.folder)
    log = LogWriter(record.folder)
    log.write(LineSplitter(0, "o").feed(text.encode()))
    log.close()
    return Run(record)


def many_ranks(store: Store, ranks: int) -> int:
    """The number of a run that has ended, each of whose ranks has printed a line."""
    record = store.add("many", "local", "", "")
    processes = tuple(Process(n, f"rank {n}", "workers", n, n) for n in range(ranks))
    status = Status(State.RUNNING, times={"running": time.time()}, processes=processes)
    status.enter(State.SUCCEEDED, "succeeded").write(record.folder)
    log = LogWriter(record.folder)
    log.write(b"".join(b"%.3f\t%d\to\tline of %d\n" % (time.time(), n, n) for n in range(ranks)))
    log.close()
    return record.id
