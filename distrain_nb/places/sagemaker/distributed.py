"""For users of SageMaker's SDK 3: distributions that its `ModelTrainer` has no class for.

    from sagemaker.train import ModelTrainer
    from distrain_nb.places.sagemaker.distributed import Horovod, ParameterServers

    ModelTrainer(..., source_code=SourceCode(source_dir="code", entry_script="train_ps.py"),
                 distributed=ParameterServers())

The worker of this package goes with the job as its driver and starts the script on every host. The
image needs Python 3.8 or later; `Horovod` needs Open MPI in it, but no SSH.
"""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr
from sagemaker.train.distributed import DistributedConfig

from distrain_nb.image.recipe import worker_files
from distrain_nb.scratch import Scratch

_DRIVER = """\
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))

from distrain_nb.worker.driver import main

sys.exit(main())
"""


class _Launched(DistributedConfig):  # type: ignore[misc]
    """What both have in common: our worker is the driver."""

    process_count_per_node: int | None = Field(default=None, ge=1)
    mpi_options: str = ""
    _folder: str = PrivateAttr(default="")

    @property
    def driver_dir(self) -> str:
        """A folder with the driver and the worker, there for as long as this configuration."""
        if not self._folder:
            scratch = Scratch("driver")
            weakref.finalize(self, scratch.close)
            _write_driver(scratch.path, self.driver_script)
            self._folder = str(scratch.path)
        return self._folder

    @property
    def driver_script(self) -> str:
        return "distrain_driver.py"


class ParameterServers(_Launched):
    """TensorFlow's parameter servers: each instance runs one server and one worker, which sends
    its updates without waiting for the others. The script finds them in `TF_CONFIG`.
    """

    launcher: Literal["parameter-server"] = "parameter-server"
    process_count_per_node: Literal[1] = 1


class Horovod(_Launched):
    """`mpirun` across all instances, `process_count_per_node` ranks on each: by default as many as
    it has GPUs, or one. `mpi_options` are added to its command line.
    """

    launcher: Literal["mpi"] = "mpi"


def _write_driver(folder: Path, script: str) -> None:
    (folder / script).write_text(_DRIVER, encoding="utf-8")
    for name, path in worker_files().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, target)
