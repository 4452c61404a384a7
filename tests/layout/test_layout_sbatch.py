"""Scripts for Slurm's sbatch: a layout is written as one, and read from one."""

from __future__ import annotations

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports, read_any

LLAMA = """\
#!/bin/bash
#SBATCH --job-name=finetune
#SBATCH -N 4            # nodes
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node a100:8
#SBATCH --cpus-per-task=96
#SBATCH -t 1-12:00:00
#SBATCH --partition="gpu long" --exclusive
#SBATCH --output=%x-%j.out

module load cuda
#SBATCH --nodes=99
srun torchrun --nnodes 4 --nproc_per_node 8 --rdzv_backend c10d finetune.py
"""


def test_a_script_is_read() -> None:
    found = read_any(LLAMA)
    assert str(found.layout) == "--on slurm --workers 4*gpu:a100:8 --timeout 36h"
    assert found.left_out == ("--cpus-per-task=96", "--partition=gpu long", "--exclusive")


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("--nodes=2 --ntasks-per-node=4", "--workers 2 -n 4"),
        ("--ntasks=8 --ntasks-per-node=4", "--workers 2 -n 4"),
        ("-N2 --gres=gpu:4 --time=30", "--workers 2*gpu:4 --timeout 30m"),
        ("--nodes=2-4 --time=infinite", "--workers 2"),
    ],
)
def test_heads_of_scripts(head: str, line: str) -> None:
    assert str(read_any(f"#!/bin/sh\n#SBATCH {head}\npython x.py").layout) == f"--on slurm {line}"


@pytest.mark.parametrize("head", ["--nodes=many", "--time=soon", '--partition="a'])
def test_what_is_no_option_is_refused(head: str) -> None:
    with pytest.raises(OptionError, match="invalid"):
        read_any(f"#!/bin/sh\n#SBATCH {head}\n")


@pytest.mark.parametrize(
    "line", ["--workers 4*gpu:8 --timeout 2h", "--workers 3", "--workers 2 -n 2", "--workers 1"]
)
def test_what_is_written_is_read_back(line: str) -> None:
    layout = Layout.from_line(f"--on slurm {line}")
    text = exports(layout)["slurm-sbatch"]
    assert read_any(text).layout == layout and f"--nnodes={layout.size}" in text
