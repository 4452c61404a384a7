"""Start a replica of a job whose replicas share a folder: `python JOB/start.py INDEX [HOST,…]`.

This file lies in that folder. INDEX is the replica's number or the name of a variable that has it.
"""

import os
import runpy
import signal
import sys
from pathlib import Path


def main(index: str = "0", hosts: str = "") -> None:
    """Set what the worker reads, and become the worker. It takes a notice of the time limit that
    comes before it is up; unblocked, that would end this process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    job = Path(__file__).resolve().parent
    worker = str(job / "code" / "worker")
    others = filter(None, (worker, os.environ.get("PYTHONPATH", "")))
    os.environ["PYTHONPATH"] = os.pathsep.join(others)
    os.environ["DISTRAIN_JOB"] = str(job)
    os.environ["DISTRAIN_INDEX"] = index if index.isdigit() else os.environ[index]
    if hosts:
        os.environ["DISTRAIN_HOSTS"] = hosts
    sys.path[0], sys.argv[1:] = worker, []
    runpy.run_module("distrain_nb.worker", run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
