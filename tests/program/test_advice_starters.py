"""A program that starts its ranks itself, in a job of several, is told of before it starts."""

from __future__ import annotations

import pytest

from distrain_nb import api
from distrain_nb.findings import Finding, Severity
from distrain_nb.program.advice import own_processes
from distrain_nb.worker.rank.program import Segment
from tests.programs.running import Program, programs

TRAIN = "import torch.distributed as dist\ndef train(*args):\n    dist.init_process_group('gloo')\n"
STARTS = {
    "import accelerate\naccelerate.notebook_launcher(train, (3,), num_processes=2)": "train(3)",
    "from accelerate import notebook_launcher as start\nstart(train, num_processes=n)": "train()",
    "from accelerate import debug_launcher\ndebug_launcher(train, args=(1, x))": "train(1, x)",
    "import os\nimport torch.multiprocessing as mp\nmp.spawn(train, args=(2,), nprocs=2)": (
        'train(int(os.environ["RANK"]), 2)'
    ),
    "n = 2\nfrom torch.multiprocessing import spawn\nif __name__ == '__main__':\n    spawn(\n"
    "        train, nprocs=n\n    )": 'train(int(__import__("os").environ["RANK"]))',
    "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(train)": (
        'train(int(__import__("os").environ["RANK"]))'
    ),
    "import torch\ntorch.multiprocessing.start_processes(train, args, 2)": "",
    "import ignite.distributed as idist\nwith idist.Parallel('gloo', nproc_per_node=2): pass": "",
    "import multiprocessing as mp\nfor r in range(2):\n"
    "    mp.get_context('spawn').Process(target=train, args=(r,)).start()": "",
    "import torch.multiprocessing as mp\ndef launch(fn, n):\n"
    "    mp.spawn(fn, args=(n,), nprocs=n)\nlaunch(train, 2)": (
        'fn(int(__import__("os").environ["RANK"]), n)'
    ),
    "import torch.multiprocessing as mp\nclass T:\n    def work(self, rank): train()\n"
    "    def fit(self):\n        mp.spawn(self.work, nprocs=2)\nt = T()\nt.fit()": (
        'self.work(int(__import__("os").environ["RANK"]))'
    ),
    "import functools, torch.multiprocessing as mp\n"
    "mp.spawn(functools.partial(train, 3), nprocs=2)": "",
    "import torch.multiprocessing as mp\nmp.spawn(lambda rank: train(rank), nprocs=2)": "",
    "import torch.multiprocessing as mp\nctx = mp.get_context('spawn')\n"
    "[ctx.Process(target=train, args=(r,)).start() for r in range(2)]": "",
    "import subprocess\nsubprocess.run(['torchrun', '--nproc-per-node', '2', 'train.py'])": "",
}
UNSURE = "import torch.multiprocessing as mp\nif {test}:\n    mp.spawn(train, nprocs=2)"
FINE = {
    "one": "from accelerate import notebook_launcher\nnotebook_launcher(train, num_processes=1)",
    "one by default": "import torch.multiprocessing as mp\nmp.spawn(train)",
    "no world": "import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)",
    "a pool": "import multiprocessing\nmultiprocessing.Pool(2).map(len, ['a'])",
    "a method": "import re\nre.compile('x').Process(target=train)",
    "a command": "import subprocess\nsubprocess.run(['ls'])",
    "a strategy": "import lightning as L\nL.Trainer(strategy='ddp', devices=2)",
    "a process": "import multiprocessing as mp\nmp.Process(target=print).start()",
    "workers": "from torch.utils.data import DataLoader\nDataLoader(data, num_workers=2)",
    "started otherwise": (
        "import os, torch.multiprocessing as mp\n"
        "if 'RANK' in os.environ:\n    train()\nelse:\n    mp.spawn(train, nprocs=2)"
    ),
    "left before": (
        "import torch.multiprocessing as mp\ndef main():\n"
        "    if dist.is_torchelastic_launched():\n        return train()\n"
        "    mp.spawn(train, nprocs=2)\nmain()"
    ),
    "never called": "from accelerate import debug_launcher\ndef test():\n    debug_launcher(train)",
}


def found(cell: str, ranks: int = 2) -> list[Finding]:
    main = TRAIN + cell
    last, first = main.count("\n") + 1, TRAIN.count("\n") + 1
    segments = (Segment(first, last, "Cell In[2]", 2, is_cell=True),)
    return list(own_processes(main, segments, ranks))


@pytest.mark.parametrize(
    "command",
    ["['torchrun', '--nproc-per-node=2', 'fit.py']", "'torchrun -np 2 fit.py', shell=True"],
)
def test_a_launcher_in_a_subprocess_has_a_line_of_ours(command: str) -> None:
    (finding,) = found(f"import subprocess\nsubprocess.run({command})")
    assert "write `%distrain run" in finding.message and "fit.py`" in finding.message


@pytest.mark.parametrize("cell", STARTS)
def test_a_world_of_its_own_is_refused_with_the_line_to_write(cell: str) -> None:
    (finding,) = found(cell)
    assert (finding.code, finding.severity) == ("launcher.own-processes", Severity.ERROR)
    assert finding.where.startswith("Cell In[2], line ")
    text = f"%%distrain -n 2\n{cell}"
    *written, alone = finding.fixes
    assert alone.apply(text) == f"%%distrain -n 1\n{cell}"
    assert [fix.label for fix in written] == ([f"Write `{STARTS[cell]}`"] if STARTS[cell] else [])
    for fix in written:
        assert STARTS[cell] in finding.message
        assert not found(fix.apply(text).partition("\n")[2])


@pytest.mark.parametrize("how", FINE)
def test_other_processes_are_fine(how: str) -> None:
    assert found(FINE[how]) == []


@pytest.mark.parametrize("test", ["args.spawn", "world_size > 1"])
def test_where_a_condition_decides_it_is_a_warning(test: str) -> None:
    assert [f.severity for f in found(UNSURE.format(test=test))] == [Severity.WARNING]


PARSED = """
import argparse, horovod
parser = argparse.ArgumentParser()
parser.add_argument("-n", "--num-proc", type=int)
parser.add_argument("--here", action="store_true", dest="locally")
if __name__ == "__main__":
    args = parser.parse_args()
    args.lr = 0.1
    if args.num_proc:
        horovod.run(train, np=args.num_proc)
    elif args.locally:
        horovod.run(train, np=4)
    else:
        train(args)
"""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [((), 0), (("--lr=1",), 0), (("--num-proc", "2"), 10), (("-n2",), 10), (("--he",), 12)],
)
def test_a_world_of_its_own_that_an_argument_asks_for_is_one_if_it_is_passed(
    arguments: tuple[str, ...], line: int
) -> None:
    found = own_processes(PARSED, (Segment(1, 14, "train.py", 1),), 2, arguments=arguments)
    lines = {int(finding.where.rpartition(" ")[2]) for finding in found}
    assert (line in lines) if line else not lines
    assert len(own_processes(PARSED, (Segment(1, 14, "train.py", 1),), 2)) == 2


def test_each_machine_may_start_its_own_as_one_of_several() -> None:
    node = "import os, torch.multiprocessing as mp\nnode = int(os.environ['RANK'])\n"
    assert found(f"{node}mp.spawn(train, args=(node,), nprocs=2)", ranks=1) == []
    (finding,) = found("import torch.multiprocessing as mp\nmp.spawn(train, nprocs=2)", ranks=1)
    assert finding.severity is Severity.WARNING


def test_it_is_found_by_check_in_jobs_of_several_ranks() -> None:
    cell = f"{TRAIN}from accelerate import notebook_launcher\nnotebook_launcher(train, (), 2)"
    codes = [f.code for f in api.check(cell, ranks_per_replica=2)]
    assert "launcher.own-processes" in codes
    assert "launcher.own-processes" not in [f.code for f in api.check(cell, ranks_per_replica=1)]


def test_a_strategy_that_starts_processes_has_its_name_put_right() -> None:
    cell = "import lightning as L\nL.Trainer(strategy='ddp_notebook', devices=2)"
    (finding,) = found(cell)
    assert finding.severity is Severity.ERROR
    assert found(finding.fixes[0].apply(cell)) == []


LAUNCH = {
    "launching.py": "import torch.multiprocessing as mp\ndef launch(fn, n):\n"
    "    mp.spawn(fn, nprocs=n)\nif __name__ == '__main__':\n    launch(None, 2)\n"
}


def test_a_module_of_ones_own_is_read_as_far_as_the_program_names_it() -> None:
    main = f"{TRAIN}from launching import launch\nlaunch(train, 2)"
    (finding,) = own_processes(main, (), 2, LAUNCH)
    assert (finding.severity, finding.where) == (Severity.ERROR, "launching.py, line 3")
    assert own_processes(f"{TRAIN}import launching\ntrain()", (), 2, LAUNCH) == ()


OWN_PLACE = (
    "import os\nos.environ['MASTER_PORT'] = '9994'\nos.environ['RANK'] = '0'\n"
    "os.environ['WORLD_SIZE'] = '1'\ntrain()"
)


@pytest.mark.parametrize(
    "cell",
    [
        OWN_PLACE,
        "import os\nos.environ.update(RANK='0', WORLD_SIZE='1')\ntrain()",
        "import os\nos.environ.update({'RANK': str(0)})\ntrain()",
        "import os\ndef setup(rank=0):\n    os.environ['RANK'] = str(rank)\nsetup()\ntrain()",
        "dist.init_process_group('gloo', 'tcp://localhost:9994', rank=0, world_size=1)",
    ],
)
def test_one_place_for_all_ranks_is_refused(cell: str) -> None:
    (finding,) = found(cell)
    assert (finding.code, finding.severity) == ("launcher.own-place", Severity.ERROR)
    assert found(cell, ranks=1) == []


def test_the_lines_that_give_the_place_are_removed() -> None:
    (finding,) = found(OWN_PLACE)
    assert finding.fixes[0].apply(f"%%distrain -n 2\n{OWN_PLACE}") == (
        "%%distrain -n 2\nimport os\ntrain()"
    )


@pytest.mark.parametrize(
    "cell",
    [
        "import os\nos.environ.setdefault('RANK', '0')\ntrain()",
        "import os\nif 'RANK' not in os.environ:\n    os.environ['RANK'] = '0'\ntrain()",
        "import os\ntry: os.environ['RANK']\nexcept KeyError: os.environ['RANK'] = '0'\ntrain()",
        "import os\nos.environ['MASTER_PORT'] = '9994'\ntrain()",
        "import os\ndef setup(rank):\n    os.environ['RANK'] = str(rank)\n"
        "setup(int(os.environ['LOCAL_RANK']))\ntrain()",
        "import os\nrank = int(os.environ['RANK'])\n"
        "dist.init_process_group('gloo', rank=rank, world_size=2)",
    ],
)
def test_a_place_of_its_own_for_each_rank_is_fine(cell: str) -> None:
    assert found(cell) == []


AS_RANKS = [program for program in programs() if not program.options.startswith("-n 1 ")]


@pytest.mark.parametrize("program", AS_RANKS, ids=lambda program: program.name)
def test_programs_that_are_started_as_ranks_start_none(program: Program) -> None:
    assert own_processes(program.text, (), 2) == ()


def test_a_module_keeps_its_lines_when_it_is_read_again() -> None:
    main = f"{TRAIN}from launching import launch\nlaunch(train, 2)\nprint('once more')"
    first, again = (own_processes(main, (), 2, LAUNCH) for _ in range(2))
    assert [finding.where for finding in first] == ["launching.py, line 3"]
    assert again == first
