"""Studies as their processes leave them on disk, without a process: for tests of what is shown."""

from __future__ import annotations

import math
import os
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.run.store import RUNS_FOLDER
from distrain_nb.study.files import STUDIES_FOLDER, TRIALS_FOLDER, StudyFile, TrialFile, TrialState
from distrain_nb.study.study import Study
from distrain_nb.worker.files.folder import EVENTS_FOLDER
from distrain_nb.worker.files.status import Owner, State, Status
from distrain_nb.worker.metrics import event_format

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

OPTIONS: dict[str, object] = {
    "tune": [
        "lr=1e-5..1e-1:log",
        "width=16|32|64",
        "layers=1..4",
        "optimizer=sgd|adam",
        "momentum[optimizer=sgd]=0.5..0.99",
    ],
    "goal": ["min:val/loss"],
    "parallel": "4",
    "stop": "median",
}
SECONDS_EACH = 10.0


def stored_study(
    home: Path,
    trials: int,
    wanted: int,
    state: State = State.RUNNING,
    number: int = 1,
    **options: object,
) -> Study:
    """A study of a network's training that has come so far; this process answers for it."""
    folder = home / STUDIES_FOLDER / str(number)
    (folder / TRIALS_FOLDER).mkdir(parents=True)
    begin = time.time() - 60.0 - SECONDS_EACH * trials
    spec = {**OPTIONS, "trials": str(wanted), **options}
    StudyFile(number, "sweep", f"key-{number}", begin, spec).write(folder)
    Status(state, supervisor=Owner.of(os.getpid())).write(folder)
    for number in range(1, trials + 1):
        stored_trial(number, begin).write(folder)
    return Study(folder)


def stored_trial(number: int, begin: float) -> TrialFile:
    """Of most the values come closer to good ones; every 9th is stopped, every 25th fails."""
    chance = random.Random(number)
    far = 1.3 * chance.gauss(0, 1) / (1 + number / 40)
    parameters: dict[str, object] = {
        "lr": 10 ** min(-1.0, max(-5.0, -2.8 + far)),
        "width": chance.choice([16, 32, 64]),
        "layers": chance.choice([1, 2, 3, 3, 4]),
        "optimizer": chance.choice(["sgd", "adam", "adam"]),
    }
    if parameters["optimizer"] == "sgd":
        parameters["momentum"] = chance.uniform(0.5, 0.99)
    loss = 0.2 + 0.12 * (math.log10(float(str(parameters["lr"]))) + 2.8) ** 2
    loss += 0.04 * abs(int(str(parameters["layers"])) - 3) + 0.03 * chance.random()
    begun = begin + SECONDS_EACH * number
    trial = TrialFile(
        number, parameters, TrialState.SUCCEEDED, run=number, goals={"val/loss": loss}, steps=10,
        begin=begun, end=begun + 4 * SECONDS_EACH,
    )  # fmt: skip
    if number % 25 == 0:
        return replace(trial, state=TrialState.FAILED, goals={}, steps=0, why="ValueError: odd")
    if number % 9 == 0:
        why = f"its best value, {loss:.4g}, is worse than the median of the others"
        return replace(trial, state=TrialState.STOPPED, steps=4, why=why)
    return trial


def report_curve(
    run: Path, values: Iterable[float], name: str = "val/loss", first: int = 0
) -> None:
    """Have the run in that folder report these values, from step *first* on."""
    data = b"".join(
        event_format.record(event_format.event(1e9 + step, step, {name: value}))
        for step, value in enumerate(values, first)
    )
    folder = run / EVENTS_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "events.out.tfevents.1").open("ab") as file:
        file.write(data)


def stored_curves(study: Study, steps: int) -> None:
    """Have the runs of a study's trials report curves that end at the trials' values."""
    for trial in study.all_trials():
        run, chance = study.folder.parents[1] / RUNS_FOLDER / str(trial.run_id), random.Random(1)
        end = trial.goals.get("val/loss", 0.6)
        count = steps if trial.state is TrialState.SUCCEEDED else steps * 2 // 5
        falling = (2 * math.exp(-8 * step / steps) + chance.gauss(0, 0.02) for step in range(count))
        report_curve(run, (end + above for above in falling))
        Status(State.SUCCEEDED).write(run)
