"""What a run's report says first, and that it comes though a rank doesn't end."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from distrain_nb import api
from distrain_nb.errors import RunFailed
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from pathlib import Path

# What PyTorch 2.11 prints and raises on an H100.
ASSERTED = """
import os
print("/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: "
      "block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.")
raise RuntimeError("CUDA error: device-side assert triggered\\nSearch for `cudaErrorAssert' in")
"""


def test_an_assertion_on_a_gpu_is_named(home: Path) -> None:
    run = api.submit(ASSERTED)
    with pytest.raises(RunFailed):
        run.wait(60)
    assert run.status.error.splitlines()[0] == (
        "rank 0 failed: RuntimeError: CUDA error: device-side assert triggered: Assertion `t >= 0 "
        "&& t < n_classes` failed in nll_loss_forward_reduce_cuda_kernel_2d"
    )


DEAF_AT_ITS_END = """
import atexit, os, threading
if os.environ["RANK"] == "1":
    atexit.register(threading.Event().wait)
    raise ValueError("mine")
threading.Event().wait()
"""
AT_ONCE = """
import sys
from pathlib import Path
import distrain_nb
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.supervisor import supervisor

folder, code = Path(sys.argv[1]), sys.argv[2]
supervisor.FAILED_RANK_ENDS_WITHIN_S = 0.1
plan = distrain_nb.plan(code, ranks_per_replica=2)
plan.job.program.write(folder / "program")
plan.launch.write(folder)
Status(State.STARTING).write(folder)
supervisor.Supervisor(folder).run()
"""


def test_a_rank_that_fails_and_waits_for_others_at_its_end(home: Path, tmp_path: Path) -> None:
    """As JAX's does, whose others wait for it in turn."""
    command = [sys.executable, "-c", AT_ONCE, str(tmp_path), DEAF_AT_ITS_END]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    status = Status.read(tmp_path)
    assert status.error.startswith("rank 1 failed first: ValueError: mine\n")
    assert status.error.endswith("\nrank 0: stopped")
