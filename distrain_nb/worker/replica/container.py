"""A container's part of a job, whoever has started it: from a launch to its exit status."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Dict, List, Optional, TextIO

from distrain_nb.worker.files.cause import Cause
from distrain_nb.worker.files.coded_line import FAILED, CodedLine
from distrain_nb.worker.files.folder import PROGRAM_FOLDER, RESULTS_FOLDER
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.log import parse
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.machine import framework_import
from distrain_nb.worker.metrics.goals import TRIAL_VARIABLE
from distrain_nb.worker.rank import program
from distrain_nb.worker.replica import prompt_orders, sagemaker, secret_stores, shared, tracker
from distrain_nb.worker.supervisor.retries import ATTEMPT_VARIABLE, mark
from distrain_nb.worker.supervisor.supervisor import SERVICE, Supervisor

EXIT_STATUS = {State.SUCCEEDED: 0, State.FAILED: 1, State.CANCELLED: 143}

# From SIGTERM to SIGKILL for the ranks. SageMaker gives a container 120 seconds.
GRACE_S, SAGEMAKER_GRACE_S = 10.0, 100.0

CLOUD_STORAGE, MOUNTED = "gs://", "/gcs/"
FOLDER_VARIABLES = (
    "AIP_MODEL_DIR",
    "AIP_CHECKPOINT_DIR",
    "AIP_TENSORBOARD_LOG_DIR",
    "DISTRAIN_OUTPUT",
)


def prepare() -> None:
    """Have everything in its place that the program may ask for; without it the process ends."""
    program.add_packages()
    if shared.is_member():
        try:
            shared.prepare()
        except shared.NotUp as problem:
            report(str(problem))
            sys.exit(EXIT_STATUS[State.FAILED])
    if sagemaker.is_training_job():
        for name, value in _variables().items():
            os.environ.setdefault(name, value)
    _mount_folders()
    try:
        secret_stores.fetch()
    except secret_stores.SecretUnavailable as error:
        report(str(error))
        sys.exit(EXIT_STATUS[State.FAILED])
    for name in filter(None, os.environ.get("DISTRAIN_PRELOAD", "").split(",")):
        with suppress(ImportError):  # the program says so itself, if it needs it
            framework_import.import_without(name)


def _variables() -> Dict[str, str]:
    """Return the variables that SageMaker gives a training job."""
    return {**sagemaker.folders(), **sagemaker.variables(), **sagemaker.trial()}


def grace() -> float:
    """Return seconds that ranks have to end when they are told to."""
    return SAGEMAKER_GRACE_S if sagemaker.is_training_job() else GRACE_S


def seconds(name: str) -> Optional[float]:
    """Return the time that a variable has; None where it isn't set."""
    return float(os.environ[name]) if name in os.environ else None


def run(launch: Launch) -> int:
    """Run that to its end and give the container's exit status. Its log goes to stdout and stderr,
    or into the folder that the job's replicas share."""
    shares = shared.is_member()
    folder = shared.folder() if shares else Path(tempfile.mkdtemp(prefix="distrain-"))
    folder.mkdir(parents=True, exist_ok=True)
    launch.write(folder)
    (folder / PROGRAM_FOLDER).symlink_to(os.environ["DISTRAIN_PROGRAM"])
    Status(State.STARTING).enter(State.STARTING).write(folder)
    trouble = tracker.take(folder, any(process.rank == 0 for process in launch.processes))
    if trouble:
        _print(trouble, sys.stderr)
    attempt = int(os.environ.get(ATTEMPT_VARIABLE, "1"))
    if attempt > 1 and any(process.rank == 0 for process in launch.processes):
        mark(os.environ.get("AIP_TENSORBOARD_LOG_DIR", ""), attempt)
    labels = [process.label for process in launch.processes]
    if shares:
        prompt_orders.follow(*shared.membership(), folder)
    Supervisor(folder, echo=None if shares else lambda records: _echo(records, labels)).run()
    status = Status.read(folder)
    _deliver(folder / RESULTS_FOLDER)
    if shares:
        (folder / shared.DELIVERED).touch()
    if status.error and not shares:  # whoever reads the folder finds it there
        report(status.error, status.cause)
    return EXIT_STATUS[status.state]


def report(error: str, cause: Optional[Cause] = None) -> None:
    """Say why it failed, also where SageMaker looks for it, and in the folder that the job's
    replicas share. With a cause, who carries the job takes it for the replica's report."""
    headline, _, rest = error.partition("\n")
    stated = str(CodedLine(FAILED, headline, cause.facts())) if cause else headline
    _print("\n".join(filter(None, (stated, rest))), sys.stderr)
    if shared.is_member():
        folder = shared.folder()
        folder.mkdir(parents=True, exist_ok=True)
        Status(State.FAILED).enter(State.FAILED, str(State.FAILED), error=error).write(folder)
    if sagemaker.FAILURE.parent.is_dir():
        sagemaker.FAILURE.write_bytes(error.encode("utf-8", "backslashreplace"))


def _mount_folders() -> None:
    """Name folders in Cloud Storage as files see them, and have them there. A trial of a study has
    its output in a folder of its own, which Vertex AI calls by the trial's number."""
    trial = os.environ.get(TRIAL_VARIABLE)
    has_folders = sagemaker.is_training_job() or shared.is_member()  # has a folder for each trial
    if trial and "DISTRAIN_OUTPUT" in os.environ and not has_folders:
        os.environ["DISTRAIN_OUTPUT"] += "/" + trial
    for name in FOLDER_VARIABLES:
        folder = os.environ.get(name, "")
        if folder.startswith(CLOUD_STORAGE) and os.path.isdir(MOUNTED):
            os.environ[name] = folder = MOUNTED + folder[len(CLOUD_STORAGE) :]
        if folder.startswith("/"):
            os.makedirs(folder, exist_ok=True)


def _deliver(results: Path) -> None:
    """Bring what was saved to where it outlives this container."""
    output = os.environ.get("DISTRAIN_OUTPUT", "")
    if output and results.is_dir():
        shutil.copytree(str(results), os.path.join(output, RESULTS_FOLDER), dirs_exist_ok=True)


def _echo(records: bytes, labels: List[str]) -> None:
    """Print the complete log lines with their ranks, on the stream that they came by."""
    for record in records.split(b"\n")[:-1]:
        _, process, kind, text = parse(record)
        if kind.islower():
            stream = sys.stdout if kind == "o" else sys.stderr
            label = labels[process] if process < len(labels) else SERVICE.label
            _print(f"[{label}] {text}", stream)


def _print(text: str, stream: TextIO) -> None:
    """Print any text, in whatever encoding the container's locale has."""
    stream.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.flush()
