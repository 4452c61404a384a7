"""Scripts for Slurm's sbatch: a layout is written as one, and read from one."""

from __future__ import annotations

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports, read_any
from distrain_nb.ui.form import Form

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
        ("--exclusive --nodes=4\n#SBATCH --requeue --gres=gpu:4", "--workers 4*gpu:4"),
        ("-N 2 -G 16 --ntasks-per-node=8", "--workers 2*gpu:8"),
        ("--nodes=2 --gpus=a100:16", "--workers 2*gpu:a100:8"),
        ("--gpus=16 --gpus-per-node=4", "--workers 4*gpu:4"),
        ("--gpus=16", "--workers 2*gpu:8"),
        ("--nodes=2 --ntasks-per-node=4 --gpus-per-task=1", "--workers 2*gpu:4"),
        ("--ntasks=2 --gpus-per-task=8", "--workers 2*gpu:8"),
        ("--ntasks=8 --gpus-per-task=h100:1", "--workers gpu:h100:8"),
        ("-n 4 --tres-per-task=gres:gpu:1", "--workers gpu:4"),
        ("-n 4 --tres-per-task=gres/gpu=2", "--workers gpu:8 -n 4"),
        ("-N 2 --sockets-per-node=2 --gpus-per-socket=v100:2", "--workers 2*gpu:v100:4"),
        ("-n 8 --ntasks-per-gpu=2", "--workers gpu:4 -n 8"),
        ("--gres=gpu:3,VRAM:12G --ntasks=1", "--workers gpu:3"),
        ("--gres=tmp:100G,gpu:v100:2", "--workers gpu:v100:2"),
        ("--gres=gpu:0", "--workers 1"),
        ("--gres=tpu:4", "--workers tpu:4"),
        ("--nodes=1k", "--workers 1024"),
        ("-N1 --gres=gpu:4\n#SBATCH hetjob\n#SBATCH -N4 -c8", "--workers gpu:4"),
        ("-N4 -c8\n#SBATCH hetjob\n#SBATCH -N2 --gpus-per-node=8", "--workers 2*gpu:8"),
    ],
)
def test_heads_of_scripts(head: str, line: str) -> None:
    assert str(read_any(f"#!/bin/sh\n#SBATCH {head}\npython x.py").layout) == f"--on slurm {line}"


LOST = {
    "--gres=gpu:3,VRAM:12G --mem-per-cpu=4G": ("--mem-per-cpu=4G", "--gres=VRAM:12G"),
    "-A proj -p gpu -C a100": ("--account=proj", "--partition=gpu", "--constraint=a100"),
    "--nodes=4 --gpus=6": ("--gpus=6",),
    "--nodes=2-4": ("--nodes=2-4",),
    "-N1\n#SBATCH hetjob\n#SBATCH -N4 --mem=8G": ("hetjob --nodes=4 --mem=8G",),
}


@pytest.mark.parametrize(("head", "lost"), LOST.items(), ids=LOST)
def test_what_a_layout_has_no_place_for_is_named(head: str, lost: tuple[str, ...]) -> None:
    assert read_any(f"#SBATCH {head}\n").left_out == lost


def test_the_form_keeps_what_options_of_the_cell_say() -> None:
    """CPUs and memory of tasks and GPUs are those of nodes there."""
    form = Form()
    head = (
        "-N2 --ntasks-per-node=4 -c 8 --gpus-per-task=1 --mem-per-gpu=40G -p gpu -A llm -q high "
        "-C a100 --exclusive --reservation r1 --nice=5"
    )
    lost = form.paste(f"#!/bin/sh\n#SBATCH {head}\nsrun python train.py --lr 0.1\n")
    assert [finding.where for finding in lost] == ["--nice=5"]
    for option in (
        "--workers 2*gpu:4", "--cpus 32", "--memory 160G", "--partition gpu", "--account llm",
        "--qos high", "--constraint a100", "--exclusive", "--reservation r1",
    ):  # fmt: skip
        assert option in form.line, form.line


STARTED = {
    "srun torchrun --nnodes 4 --nproc_per_node=8 --standalone t.py --lr 1": "t.py --lr 1",
    "srun -l --cpu-bind=none python -u -W ignore src/t.py": "src/t.py",
    "python3.11 -m pkg.train --a b # why": "-m pkg.train --a b",
    "srun python -m torch.distributed.run --nproc-per-node 2 -m pkg.t x": "-m pkg.t x",
    "srun --container-image=nvcr.io#nvidia/pytorch:24.01-py3 python t.py": "t.py",
    "srun torchrun \\\n  --nproc-per-node $N \\\n  t.py": "t.py",
    "python t.py $SLURM_ARRAY_TASK_ID": "",
    "python -c 'print(1)'": "",
    "echo python t.py": "",
    "python t.py | tee log": "",
}


@pytest.mark.parametrize(("command", "script"), STARTED.items(), ids=STARTED)
def test_the_script_that_is_started(command: str, script: str) -> None:
    assert " ".join(read_any(f"#!/bin/sh\n#SBATCH -N2\n{command}\n").script) == script


@pytest.mark.parametrize(
    "head",
    [
        "--gpus-per-socket=2",
        "--gpus=a:b",
        "--nodez=2",
        "--nodes=many",
        "--time=soon",
        '--partition="a',
    ],
)
def test_what_is_no_option_is_refused(head: str) -> None:
    with pytest.raises(OptionError, match=r"invalid|--gpus-per-socket=2|no option --nodez"):
        read_any(f"#!/bin/sh\n#SBATCH {head}\n")


@pytest.mark.parametrize(
    "line", ["--workers 4*gpu:8 --timeout 2h", "--workers 3", "--workers 2 -n 2", "--workers 1"]
)
def test_what_is_written_is_read_back(line: str) -> None:
    layout = Layout.from_line(f"--on slurm {line}")
    text = exports(layout)["slurm-sbatch"]
    assert read_any(text).layout == layout and f"--nnodes={layout.size}" in text
