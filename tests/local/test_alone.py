"""A run whose ranks have each worked alone says so, though it succeeds; others don't."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.run import Run

GROUP = "import torch.distributed as dist\ndist.init_process_group('gloo'"
ALONE = {
    "torch.distributed was never initialized": "import torch\nprint(torch.ones(2).sum())",
    "torch.distributed knows of 1 process": (
        f"import tempfile\n{GROUP}, init_method=f'file://{{tempfile.mkdtemp()}}/meet',"
        " rank=0, world_size=1)"
    ),
    "Accelerate knows of 1 process": (
        "import os\nfrom accelerate import Accelerator\n"
        "for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE'):\n    del os.environ[name]\n"
        "print(Accelerator(cpu=True).num_processes)\nos.environ['WORLD_SIZE'] = '2'"
    ),
}
TOGETHER = {
    "a group": f"{GROUP})",
    "a group that was destroyed": f"{GROUP})\ndist.destroy_process_group()\nraise SystemExit",
    "shares by rank": "import os, torch\nprint(torch.arange(4)[int(os.environ['RANK'])::2])",
    "no framework": "print(1)",
    "MPI that was finalized": "import torch\nfrom mpi4py import MPI\nMPI.Finalize()",
}


def _run(cell: str, **options: str) -> Run:
    return api.submit(cell, wait=False, workers="1", **options)


@pytest.mark.parametrize("why", ALONE)
def test_ranks_that_worked_alone_are_told(home: Path, why: str) -> None:
    run = _run(ALONE[why])
    with pytest.warns(UserWarning, match=why):
        run.wait(300)
    assert run.status.note.startswith(f"warning: the ranks worked alone: {why}")
    assert f"[rank 1] distrain: warning: rank 1 of 2 worked alone: {why}" in run.logs()


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
    assert "distrain: " not in run.logs()
