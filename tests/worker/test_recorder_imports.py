"""What is read of PyTorch's flight recorder costs a rank no import of the compiler."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

CODE = """
import os, sys
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1",
                  TORCH_FR_BUFFER_SIZE="100")
import torch, torch.distributed as dist
from distrain_nb.worker.rank import exchanges
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(1))
entries = exchanges._entries()
print(len(entries) > 0, "torch._inductor" in sys.modules, "_inductor" in vars(torch))
"""


def test_frames_of_collectives_are_read_without_the_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "False", "False"], done.stderr
