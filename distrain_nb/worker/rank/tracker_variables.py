"""Variables for ranks that call an experiment tracker themselves: one run for all.

W&B's variables are those of docs.wandb.ai ("Environment variables"), trackio's those of
`trackio.init` and `TRACKIO_DIR`. Names that the user has set stand, and so does
what a cell says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Mapping, Optional

from distrain_nb.worker.files import fields, tracked
from distrain_nb.worker.files.folder import (
    RECORD_FILE,
    TRACKIO_FOLDER,
)


def variables(
    folder: Path,
    process: int,
    rank: Optional[int],
    environment: Mapping[str, str],
    names: Mapping[str, str],
) -> Dict[str, str]:
    """Return the variables of a process of a run, besides those of its `environment`; `names` are
    those of the run."""
    named = {name: text for name, text in names.items() if text and name not in environment}
    further = {} if rank == 0 else _kept_apart(folder, process)
    return {**named, **further, **tracked.variables(folder, process, rank)}


def names_of_run(folder: Path) -> Dict[str, str]:
    """Return the names under which the run has a record: in a cloud its ranks know of none."""
    try:
        record = fields.load(folder / RECORD_FILE)
    except (OSError, fields.Damaged):
        return {}
    return {
        "WANDB_NAME": str(record.get("name", "")),
        "WANDB_RUN_GROUP": str(record.get("experiment", "")),
    }


def _kept_apart(folder: Path, process: int) -> Dict[str, str]:
    """Return variables that keep what ranks other than 0 log out of the project."""
    tracker_folder = str(folder / TRACKIO_FOLDER.format(process))
    return {"WANDB_MODE": "disabled", "TRACKIO_DIR": tracker_folder}
