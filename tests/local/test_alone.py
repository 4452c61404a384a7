"""A run whose ranks have each worked alone says so, though it succeeds; others don't."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.run import Run

GROUP = "import torch.distributed as dist\ndist.init_process_group('gloo'"
MOCK = (
    "import os, tempfile\n"
    "os.environ.update(RANK='0', LOCAL_RANK='0', WORLD_SIZE='1', LOCAL_WORLD_SIZE='1')\n"
)
ALONE = {
    "torch.distributed was never initialized": "import torch\nprint(torch.ones(2).sum())",
    "TensorFlow's MirroredStrategy knows of 1 process": (
        "import tensorflow as tf\ntf.distribute.MirroredStrategy().run(lambda: tf.constant(1))"
    ),
    "torch.distributed knows of 1 process": (
        f"{MOCK}{GROUP}, init_method=f'file://{{tempfile.mkdtemp()}}/meet',"
        " rank=0, world_size=1)\n"
        "dist.destroy_process_group()"
    ),
    "Accelerate knows of 1 process (without a GPU, write `Accelerator(cpu=True)` or": (
        "from accelerate import Accelerator\nprint(Accelerator().num_processes)"
    ),
}
TOGETHER = {
    "a group": f"{GROUP})",
    "a group that was destroyed": f"{GROUP})\ndist.destroy_process_group()\nraise SystemExit",
    "a group that a mesh has made": (
        "import torch.distributed as dist\ndist.init_device_mesh('cpu', (2,))"
    ),
    "shares by rank": "import os, torch\nprint(torch.arange(4)[int(os.environ['RANK'])::2])",
    "shares by rank, and computes nothing with JAX": "import os, jax, torch\nos.getenv('RANK')",
    "Accelerate": "from accelerate import Accelerator\nAccelerator(cpu=True)",
    "no framework": "print(1)",
    "MPI that was finalized": "import torch\nfrom mpi4py import MPI\nMPI.Finalize()",
}


def _run(cell: str, **options: str) -> Run:
    return api.submit(cell, wait=False, workers="1", **options)


@pytest.mark.parametrize("why", ALONE)
def test_ranks_that_worked_alone_are_told(home: Path, why: str) -> None:
    run = _run(ALONE[why])
    with pytest.warns(UserWarning, match=re.escape(why)):
        run.wait(300)
    assert run.status.note.startswith(f"warning: the ranks worked alone: {why}")
    assert f"[rank 1] distrain[alone]: warning: rank 1 of 2 worked alone: {why}" in run.logs()


@pytest.mark.parametrize("how", TOGETHER)
def test_ranks_that_worked_together_or_on_purpose_apart_are_not(home: Path, how: str) -> None:
    _quiet(_run(TOGETHER[how]))


def test_the_launcher_python_starts_what_need_not_meet(home: Path) -> None:
    _quiet(_run(ALONE["torch.distributed was never initialized"], launcher="python"))


def _quiet(run: Run) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.wait(300)
    assert not run.status.note
    assert "distrain" not in run.logs()
