"""The state of a run in an experiment tracker, and what its ranks know of it.

Ranks that call MLflow themselves, as `mlflow.autolog()` does, find it by variables. Rank 0 goes on
with the tracker's run, unless the program names another experiment or tracker, for which MLflow
would refuse that run. All others, and all ranks of a run that the tracker doesn't have yet, keep
what they log in the run's folder: four ranks are one run, and a tracker that is down ends none.
"""

from __future__ import annotations

import ast
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Optional

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import (
    MLFLOW_FILE,
    MLFLOW_FOLDER,
    PROGRAM_FOLDER,
    TRACKING_FILE,
    VERTEX_FILE,
)

VERTEX_SCHEME = "vertex:"
FILES = {"MLflow": MLFLOW_FILE, "Vertex AI Experiments": VERTEX_FILE}  # by tracker
TRIAL_TAG, PARENT_TAG = "distrain.trial", "mlflow.parentRunId"  # by which trials find their runs
URI_VARIABLE, RUN_VARIABLE = "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"

# Tells a container of its run, as JSON (`Tracked.for_ranks`).
TRACKED_VARIABLE = "DISTRAIN_TRACKED"


@dataclass(frozen=True)
class Tracked:
    """A run of a tracker, by its identifiers; `done` says that all of ours is in it.

    `name` is the run's where it is found by that, written down before the run is made. `note` says
    what keeps it from being brought up to date; `url` is its page, where it has one. `parent` is
    the run of its study, for a trial that doesn't know its own yet.
    """

    uri: str
    run: str = ""
    experiment: str = ""
    experiment_name: str = ""
    url: str = ""
    note: str = ""
    done: bool = False
    name: str = ""
    parent: str = ""

    def write(self, folder: Path) -> None:
        file = VERTEX_FILE if self.uri.startswith(VERTEX_SCHEME) else MLFLOW_FILE
        replace_file(folder / file, fields.encode(self, indent=1))

    @classmethod
    def read(cls, folder: Path, file: str = MLFLOW_FILE) -> Optional[Tracked]:
        """Read the file; None where the tracker has nothing of the run. Raises `fields.Damaged`."""
        try:
            return fields.read(cls, folder / file)
        except FileNotFoundError:
            return None

    @property
    def for_ranks(self) -> str:
        """What ranks elsewhere need to know of it, as JSON."""
        entries = {"uri": self.uri, "run": self.run, "experiment": self.experiment}
        if self.parent:
            entries["parent"] = self.parent
        return json.dumps(entries if self.run or self.parent else {})

    @classmethod
    def from_text(cls, text: str) -> Tracked:
        """Parse the text of `for_ranks`. Any other text gives an empty one, without a run."""
        try:
            return fields.decode(cls, {"uri": "", **json.loads(text)}, Path(TRACKED_VARIABLE))
        except (ValueError, TypeError):
            return cls("")


def variables(folder: Path, process: int, rank: Optional[int]) -> Dict[str, str]:
    """Return the variables of a process of a run, besides what it has; none for a run that isn't
    tracked."""
    if not os.path.exists(str(folder / TRACKING_FILE)):
        return {}
    try:
        tracked = Tracked.read(folder)
    except (OSError, fields.Damaged):
        tracked = None
    if rank == 0 and tracked is not None and tracked.run:
        return _of_the_run(tracked, folder / PROGRAM_FOLDER)
    return {
        URI_VARIABLE: (folder / MLFLOW_FOLDER.format(process)).as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_EXPERIMENT_ID": "0",
        "MLFLOW_EXPERIMENT_NAME": "Default",
    }


def _of_the_run(tracked: Tracked, program: Path) -> Dict[str, str]:
    address = os.environ.get(URI_VARIABLE, "")
    has_login = "@" in address and _without_login(address) == tracked.uri  # our files have none
    variables = {} if has_login else {URI_VARIABLE: tracked.uri}
    if any(_names_another(path, tracked) for path in program.rglob("*.py")):
        return variables
    variables.update({RUN_VARIABLE: tracked.run, "MLFLOW_EXPERIMENT_ID": tracked.experiment})
    if tracked.experiment_name:
        variables["MLFLOW_EXPERIMENT_NAME"] = tracked.experiment_name
    return variables


def _without_login(uri: str) -> str:
    scheme, separator, rest = uri.partition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _names_another(file: Path, tracked: Tracked) -> bool:
    """Return whether its text tells MLflow of an experiment or a tracker, by what may not be
    ours."""
    ours = {"set_experiment": tracked.experiment_name, "set_tracking_uri": tracked.uri}
    try:
        text = file.read_text(encoding="utf-8")
        calls = "mlflow" in text and any(name in text for name in ours)
        tree = ast.parse(text if calls else "")
    except (OSError, ValueError, SyntaxError, RecursionError):  # nothing that can run
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ours and _only_text(node) != ours[name]:
                return True
    return False


def _only_text(call: ast.Call) -> Optional[str]:
    """Return the argument of a call that has one, a string; None for any other call."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    with suppress(ValueError):
        constants = [ast.literal_eval(value) for value in values]
        return constants[0] if len(constants) == 1 and isinstance(constants[0], str) else None
    return None
