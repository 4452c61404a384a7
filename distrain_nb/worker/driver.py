"""Entry point of a `ModelTrainer` of SageMaker's SDK 3: runs its script as a program of ours.

The SDK tells by variables: `SM_ENTRY_SCRIPT` in the working folder, `SM_HPS` with what becomes its
command line, and `SM_DISTRIBUTED_CONFIG`, which `distrain_nb.places.sagemaker.distributed` fills.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import List

from distrain_nb.worker import __main__ as worker
from distrain_nb.worker.rank import program

_MAIN = """\
import runpy
import sys

sys.argv = {argv!r}
sys.path[0] = {folder!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def main() -> int:
    """Run this host's part of the job and give the container's exit status."""
    config = json.loads(os.environ["SM_DISTRIBUTED_CONFIG"])
    ranks = config["process_count_per_node"] or max(1, int(os.environ.get("SM_NUM_GPUS", "0")))
    os.environ["DISTRAIN_RUN"] = os.environ["TRAINING_JOB_NAME"]
    os.environ["DISTRAIN_LAUNCHER"] = config["launcher"]
    os.environ["DISTRAIN_RANKS"] = str(ranks)
    os.environ["DISTRAIN_MPI_OPTIONS"] = config["mpi_options"]
    with tempfile.TemporaryDirectory(prefix="distrain-") as folder:
        _lay_out(Path(folder))
        os.environ["DISTRAIN_PROGRAM"] = folder
        return worker.main()


def _lay_out(folder: Path) -> None:
    """Write a program folder that runs the entry script."""
    argv = [os.environ["SM_ENTRY_SCRIPT"], *_arguments()]
    text = _MAIN.format(argv=argv, folder=os.getcwd())
    (folder / program.MAIN).write_text(text, encoding="utf-8")
    (folder / program.SOURCE_MAP).write_text(program.source_map([]), encoding="utf-8")


def _arguments() -> List[str]:
    """Return hyperparameters as the SDK's own drivers give them to a script."""
    arguments: List[str] = []
    for name, value in json.loads(os.environ["SM_HPS"]).items():
        text = value if isinstance(value, str) else json.dumps(value)
        arguments += ["--" + name, text]
    return arguments
