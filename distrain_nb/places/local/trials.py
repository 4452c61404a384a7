"""Trials of a study on this machine: runs of one launch file, with their own values and GPUs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.tuning import TRIAL
from distrain_nb.places.local.machine import gpus_of
from distrain_nb.places.local.plan import LocalJob
from distrain_nb.worker.files.folder import HYPERTUNE_FILE, STATUS_FILE
from distrain_nb.worker.files.launch import RUN, Launch
from distrain_nb.worker.files.status import UNTAKEN, Owner, State, Status, request_cancel
from distrain_nb.worker.machine.gpus import VISIBLE, shares
from distrain_nb.worker.rank.arguments import ARGUMENTS_VARIABLE

if TYPE_CHECKING:
    from distrain_nb.backends.tuning import TrialStart


def job_of_trial(job: LocalJob, parallel: int) -> tuple[LocalJob, tuple[str, ...]]:
    """Return the job of any trial, which knows its number and has its share of this machine; the
    GPUs of each that run at once."""
    machine = {**job.machine, "jobs": str(parallel)}
    gpus = gpus_of(job.environ)
    devices = shares(gpus, parallel)
    if devices:
        machine["gpus"] = str(len(devices[0].split(",")))
        machine["trials_per_gpu"] = str(max(1, -(-parallel // len(gpus))))
    return replace(job, trial=TRIAL, machine=machine), devices


def launch_of(launch: Launch, trial: TrialStart) -> Launch:
    """Return the launch of that trial: its number, its values as arguments, and its GPUs."""
    variables = {
        ARGUMENTS_VARIABLE: json.dumps(list(trial.arguments)),
        "CLOUD_ML_TRIAL_ID": str(trial.number),
        **({VISIBLE: trial.share} if trial.share is not None else {}),
    }
    processes = [
        replace(process, environment={**_numbered(process.environment, trial.number), **variables})
        for process in launch.processes
    ]
    for index, process in enumerate(processes):
        process.environment["CLOUD_ML_HP_METRIC_FILE"] = f"{RUN}/{HYPERTUNE_FILE.format(index)}"
    return replace(launch, processes=tuple(processes))


def has_begun(folder: Path) -> bool:
    """Return whether a fork server has the run of a trial that was added before this process was
    there.

    Where it may just be on its way to one, it is told not to begin.
    """
    status = Status.read(folder) if (folder / STATUS_FILE).exists() else None
    if status is None:
        return False
    owner = status.supervisor
    if status.state is not State.STARTING:
        return True
    if owner is not None and owner != Owner.of(os.getpid()) and owner.alive:  # not still ours
        return True
    request_cancel(folder, UNTAKEN)
    return Status.read(folder) != status  # it may have been taken, or have ended, since


def _numbered(environment: Mapping[str, str], number: int) -> dict[str, str]:
    return {name: text.replace(TRIAL, str(number)) for name, text in environment.items()}
