"""Runs in a store, written as real ones are."""

from __future__ import annotations

import time

from distrain_nb.run import Run, Store
from distrain_nb.worker.files.log import LineSplitter, LogWriter
from distrain_nb.worker.files.status import Process, State, Status


def stored_run(store: Store, text: str = "", state: State = State.SUCCEEDED) -> Run:
    """A run of two ranks of pool `workers` that has ended; rank 0 has printed `text`."""
    record = store.add("stored", "local", "", "")
    processes = tuple(Process(n, f"rank {n}", "workers", n, n) for n in range(2))
    status = Status(State.RUNNING, times={"running": time.time()}, processes=processes)
    status.enter(state, str(state)).write(record.folder)
    log = LogWriter(record.folder)
    log.write(LineSplitter(0, "o").feed(text.encode()))
    log.close()
    return Run(record)
