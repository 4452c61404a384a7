"""What an answer about a large study costs: `python -m benchmarks.study_page [TRIALS]`.

The first answer of a server, one while nothing changes, and one after a trial has ended; for one
goal and for two. Milliseconds of CPU, medians of five, and the size of each answer in kB.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.run.metrics.finite import to_json
from distrain_nb.study.answers import answer
from distrain_nb.study.files import TRIALS_FOLDER
from distrain_nb.study.importances import Importances
from distrain_nb.worker.files import fields
from tests.study.stored import stored_study, stored_trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.study.study import Study

ROUNDS = 5


def measured(ask: Callable[[], object]) -> tuple[float, str]:
    """Milliseconds of this thread, and the answer as it is sent."""
    begun = time.thread_time()
    text = to_json(ask())
    return 1000 * (time.thread_time() - begun), text


def write(study: Study, number: int) -> None:
    """As the study's process does, but that it waits for no disk."""
    trial = stored_trial(number, study.file.created)
    cost = {"cost": float(str(trial.parameters["lr"]))} if trial.goals else {}
    trial = replace(trial, goals={**trial.goals, **cost})
    path = study.folder / TRIALS_FOLDER / f"{number}.json"
    path.with_suffix(".new").write_bytes(fields.encode(trial, indent=1))
    path.with_suffix(".new").rename(path)


def of_study(home: Path, trials: int, goals: list[str]) -> dict[str, float]:
    study = stored_study(home, 0, 2 * trials, number=len(goals), goal=goals)
    for number in range(1, trials + 1):
        write(study, number)
    importances = Importances()
    first, text = measured(lambda: answer(study, importances, {}))
    importances.of(study.spec, study.all_trials(), wait=True)
    seen = {"seen": json.loads(measured(lambda: answer(study, importances, {}))[1])["seen"]}
    again = [measured(lambda: answer(study, importances, seen)) for _ in range(ROUNDS)]
    changed = []
    for number in range(trials + 1, trials + 1 + ROUNDS):
        write(study, number)
        spent, text = measured(lambda: answer(study, importances, seen))
        seen["seen"] = json.loads(text)["seen"]
        changed.append((spent, text))
    return {
        "first_ms": round(first),
        "again_ms": round(statistics.median(spent for spent, _ in again)),
        "again_kb": round(len(again[0][1]) / 1000),
        "changed_ms": round(statistics.median(spent for spent, _ in changed)),
        "changed_kb": round(len(changed[0][1]) / 1000),
    }


def main(trials: int = 10_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "one_goal": of_study(Path(folder) / "one", trials, ["min:val/loss"]),
            "two_goals": of_study(Path(folder) / "two", trials, ["min:val/loss", "min:cost"]),
        }
    print(json.dumps({"trials": trials, **found}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
