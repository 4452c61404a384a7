"""What an image of ours starts: this replica's ranks, its log on stdout, its exit status.

Told by variables: `DISTRAIN_PROGRAM` is the program's folder, `DISTRAIN_PACKAGES` a folder of
packages that the image brings besides its own, `DISTRAIN_RANKS` how many ranks a training replica
has (one), `DISTRAIN_PRELOAD` modules, separated by commas, to import before they are forked, and
`DISTRAIN_LAUNCHER=mpi` has the ranks of this replica started by `mpirun`. `DISTRAIN_RESULTS` are
names of rank 0, separated by commas, to save below the folder `DISTRAIN_OUTPUT`. Folders in Cloud
Storage, `gs://…`, are used where Vertex AI mounts them, `/gcs/…`.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from distrain_nb.worker import rank
from distrain_nb.worker.launch import PROGRAM_FOLDER, RESULTS_FOLDER, Launch, mpirun
from distrain_nb.worker.log import parse
from distrain_nb.worker.replica import Replica
from distrain_nb.worker.status import State, Status
from distrain_nb.worker.supervisor import Supervisor

EXIT_STATUS = {State.SUCCEEDED: 0, State.FAILED: 1, State.CANCELLED: 143}
GRACE_S = 10.0

# What is written here SageMaker gives as the reason of a failed job.
SAGEMAKER_FAILURE = Path("/opt/ml/output/failure")

CLOUD_STORAGE, MOUNTED = "gs://", "/gcs/"
FOLDER_VARIABLES = (
    "AIP_MODEL_DIR",
    "AIP_CHECKPOINT_DIR",
    "AIP_TENSORBOARD_LOG_DIR",
    "DISTRAIN_OUTPUT",
)


def main() -> int:
    """Run this replica to its end and give the container's exit status."""
    rank.add_packages()
    _mount_folders()
    for name in filter(None, os.environ.get("DISTRAIN_PRELOAD", "").split(",")):
        importlib.import_module(name)
    folder = Path(tempfile.mkdtemp(prefix="distrain-"))
    launch = _launch()
    launch.write(folder)
    (folder / PROGRAM_FOLDER).symlink_to(os.environ["DISTRAIN_PROGRAM"])
    Status(State.STARTING).enter(State.STARTING).write(folder)
    labels = [process.label for process in launch.processes]
    Supervisor(folder, echo=lambda records: _echo(records, labels)).run()
    status = Status.read(folder)
    _deliver(folder / RESULTS_FOLDER)
    if status.error:
        print(status.error, file=sys.stderr, flush=True)
        if SAGEMAKER_FAILURE.parent.is_dir():
            SAGEMAKER_FAILURE.write_text(status.error, encoding="utf-8")
    return EXIT_STATUS[status.state]


def _launch() -> Launch:
    replica = Replica.read(os.environ)
    ranks = int(os.environ.get("DISTRAIN_RANKS", "1"))
    processes = replica.processes(ranks, os.environ.get("DISTRAIN_RUN", "distrain"))
    mpi = os.environ.get("DISTRAIN_LAUNCHER") == "mpi"
    command = mpirun(len(processes)) if mpi else ()
    names = os.environ.get("DISTRAIN_RESULTS", "") if replica.role == "primary" else ""
    results = tuple(filter(None, names.split(",")))
    return Launch(processes, os.getcwd(), ports=1, results=results, mpirun=command, grace=GRACE_S)


def _mount_folders() -> None:
    """Name folders in Cloud Storage as files see them, and have them there."""
    for name in FOLDER_VARIABLES:
        told = os.environ.get(name, "")
        if told.startswith(CLOUD_STORAGE) and os.path.isdir(MOUNTED):
            os.environ[name] = told = MOUNTED + told[len(CLOUD_STORAGE) :]
        if told.startswith("/"):
            os.makedirs(told, exist_ok=True)


def _deliver(results: Path) -> None:
    """Bring what was saved to where it outlives this container."""
    output = os.environ.get("DISTRAIN_OUTPUT", "")
    if output and results.is_dir():
        shutil.copytree(str(results), os.path.join(output, RESULTS_FOLDER), dirs_exist_ok=True)


def _echo(records: bytes, labels: "list[str]") -> None:
    """The lines that are whole, each with its rank, on the stream that it came by."""
    for record in records.splitlines():
        _, process, kind, text = parse(record)
        if kind.islower():
            stream = sys.stdout if kind == "o" else sys.stderr
            print("[%s] %s" % (labels[process], text), file=stream, flush=True)


if __name__ == "__main__":
    sys.exit(main())
