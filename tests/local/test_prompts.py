"""A prompt in a rank: `breakpoint()`, `input()` and the like ask in the cell that waits."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from distrain_nb import api
from tests.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.kernels import Kernel, Outcome

HEAD = """
import os
rank = int(os.environ["RANK"])
"""
STEPS = (
    HEAD
    + """
def f(loss):
    y = loss + 1
    if rank == 1:
        breakpoint()
    z = y * 2
    return z
print("got", f(rank * 10))
"""
)
GROUP = (
    HEAD
    + """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
loss = torch.tensor([float(rank)])
"""
)


def talk(
    nb: Kernel, cell: str, answers: Sequence[tuple[str, str]], options: str = "-n 2"
) -> Outcome:
    """Run a cell, and give each answer to the question of its beginning."""
    sent = nb.send(f"%%distrain {options}\n{cell}", on_a_page=True)
    for begin, answer in answers:
        asked = nb.question()
        assert asked.startswith(begin), asked
        nb.answer(answer)
    return nb.outcome(sent)


def at_prompt(rank: int, *commands: str) -> list[tuple[str, str]]:
    return [(f"[rank {rank}] ipdb> ", command) for command in commands]


def log(run: int = 1) -> str:
    return str(api.attach(str(run)).logs())


def ranks_of(run: int = 1) -> list[psutil.Process]:
    """The processes of a run that are there."""
    folder = str(api.attach(str(run)).folder)
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AIP_MODEL_DIR", "").startswith(folder):
                left.append(process)
        except psutil.Error:
            continue
    return left


def is_over(run: int = 1) -> bool:
    return api.attach(str(run)).state.final and not ranks_of(run)


def test_a_breakpoint_is_a_prompt_of_its_rank(nb: Kernel) -> None:
    commands = ("w", "p loss", "u", "p rank", "d", "n", "p z", "c")
    outcome = talk(nb, STEPS, at_prompt(1, *commands))
    assert not outcome.error
    assert "--- rank 1 ---" in outcome.text
    assert "> Cell In[2](10)f()" in outcome.text  # the line below `breakpoint()`
    assert "      8     if rank == 1:" in outcome.text
    assert "distrain_nb" not in outcome.text  # no frame of ours
    assert "\n10\n" in outcome.text and "\n22\n" in outcome.text
    assert "[rank 0] got 2\n[rank 1] got 22" in log()
    assert not ranks_of()


def test_input_and_getpass_ask_in_their_rank(nb: Kernel, home: Path) -> None:
    cell = HEAD + "import getpass\n"
    cell += "answer = input('name? ') if rank else getpass.getpass('key: ')\n"
    cell += "print('length', len(answer))"
    sent = nb.send(f"%%distrain -n 2\n{cell}", on_a_page=True)
    asked = {}
    for _ in range(2):
        question = nb.question()
        asked[question] = nb.answer("four" if "name" in question else "geheim")
    assert not nb.outcome(sent).error
    assert set(asked) == {"[rank 0] key: *", "[rank 1] name? "}
    assert "[rank 0] length 6" in log() and "[rank 1] length 4" in log()
    texts = [file.read_bytes() for file in home.rglob("*") if file.is_file()]
    assert not any(b"geheim" in text for text in texts)  # nor in a file of the run


def test_ranks_are_asked_one_after_the_other(nb: Kernel) -> None:
    cell = HEAD + "value = rank + 5\nbreakpoint()\nprint('after', value)"
    outcome = talk(
        nb, cell, [*at_prompt(0, "ranks p value", "value = 7", "c"), *at_prompt(1, "p value", "c")]
    )
    assert "here: 5\nrank 1: 6\n" in outcome.text
    assert "[rank 0] after 7" in log() and "[rank 1] after 6" in log()


def test_ranks_evaluates_where_each_rank_is(nb: Kernel) -> None:
    cell = GROUP + "if rank == 1: breakpoint()\ndist.all_reduce(loss)\nprint('sum', loss.item())"
    commands = ("ranks p loss", "ranks pp nothing", "ranks", "ranks p 1 / 0", "c")
    outcome = talk(nb, cell, at_prompt(1, *commands), "-n 3")
    assert "here: tensor([1.])\nrank 0: tensor([0.])\nrank 2: tensor([2.])\n" in outcome.text
    assert "rank 0: *** NameError: name 'nothing' is not defined" in outcome.text
    assert "*** expected an expression, as in: ranks p loss" in outcome.text
    assert "rank 2: *** ZeroDivisionError: division by zero" in outcome.text
    assert log().count("sum 3.0") == 3


def test_stepping_goes_on_to_the_next_statement(nb: Kernel) -> None:
    cell = HEAD + "value = 4\nbreakpoint()\nvalue += 1\nif value:\n    breakpoint()\nvalue + 10"
    outcome = talk(nb, cell, at_prompt(0, "n", "p value", "c", "n", "n", "c"), "-n 1")
    assert "----> 7 value += 1" in outcome.text and "----> 8 if value:" in outcome.text
    assert "--Return--" in outcome.text  # what a debugger says before it asks
    assert "---> 10 value + 10" in outcome.text
    assert "distrain_nb" not in outcome.text
    assert "[rank 0] 15" in log() and "--Return--" not in log()


@pytest.mark.parametrize(
    "ask",
    [
        "import pdb; pdb.set_trace()",
        "import pdb; pdb.Pdb().set_trace()",
        "from IPython.core.debugger import set_trace; set_trace()",
        "from IPython.terminal.debugger import set_trace; set_trace()",
    ],
)
def test_other_ways_to_a_prompt(nb: Kernel, ask: str) -> None:
    cell = HEAD + f"value = 41\nif rank:\n    {ask}\n    value += 1\nprint('has', value)"
    sent = nb.send(f"%%distrain -n 2\n{cell}", on_a_page=True)
    for command in ("p value * 2", "c"):
        assert re.fullmatch(r"\[rank 1\] (ipdb> |\(Pdb\) )", nb.question())
        nb.answer(command)
    outcome = nb.outcome(sent)
    assert "\n82\n" in outcome.text
    assert "[rank 1] has 42" in log()


def test_torch_distributed_breakpoint(nb: Kernel) -> None:
    cell = GROUP + "dist.breakpoint(rank=1)\nprint('on')"
    sent = nb.send(f"%%distrain -n 2\n{cell}", on_a_page=True)
    for command in ("u", "p loss", "c"):
        assert nb.question() == "[rank 1] (Pdb) "
        nb.answer(command)
    text = nb.outcome(sent).text
    assert "Type 'up' to get to the frame" in text and "\ntensor([1.])\n" in text
    assert log().count("] on") == 2


def test_a_prompt_in_a_backward_hook(nb: Kernel) -> None:
    cell = (
        GROUP
        + """
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(torch.nn.Linear(2, 1))
def look(gradient):
    scale = 3
    if rank == 1:
        breakpoint()
    return gradient * scale
out = model(torch.ones(4, 2))
out.register_hook(look)
out.sum().backward()
print("gradient", model.module.weight.grad[0, 0].item())
"""
    )
    outcome = talk(nb, cell, at_prompt(1, "p gradient.shape", "scale = 5", "c"))
    assert "torch.Size([4, 1])" in outcome.text
    assert log().count("gradient 16.0") == 2  # the mean of 4 * 3 and 4 * 5


def test_quitting_fails_the_run(nb: Kernel) -> None:
    cell = GROUP + "if rank == 2: breakpoint()\ndist.barrier()"
    outcome = talk(nb, cell, at_prompt(2, "q"), "-n 4")
    assert "RunFailed" in outcome.error and "rank 2" in outcome.error
    assert "BdbQuit" in outcome.error
    assert is_over()


def test_post_mortem_of_the_line_that_fails(nb: Kernel) -> None:
    cell = HEAD + "def f(x):\n    return 1 / x\nif rank: f(0)\nprint('fine')"
    outcome = talk(nb, cell, at_prompt(1, "p x", "u", "p rank", "q"), "-n 2 --debug")
    assert "ZeroDivisionError" in outcome.text and "> Cell In[2](6)f()" in outcome.text
    assert "ZeroDivisionError: division by zero" in outcome.error
    assert is_over()


def test_post_mortem_after_a_collectives_error(nb: Kernel) -> None:
    cell = GROUP + "if rank == 1: os._exit(3)\nsteps = 8\ndist.all_reduce(loss)"
    sent = nb.send(f"%%distrain -n 2 --debug\n{cell}", on_a_page=True)
    assert nb.question() == "[rank 0] ipdb> "
    time.sleep(2)  # longer than the others of a failed rank usually have
    for command in ("u", "u", "u", "ranks p steps", "q"):
        nb.answer(command)
        if command != "q":
            nb.question()
    outcome = nb.outcome(sent)
    assert "here: 8\nrank 1: *** it has ended: exited with status 3" in outcome.text
    assert "RunFailed" in outcome.error and "rank 1" in outcome.error
    assert is_over()


def test_an_interrupt_at_the_prompt_cancels_the_run(nb: Kernel) -> None:
    sent = nb.send(f"%%distrain -n 2\n{STEPS}", on_a_page=True)
    nb.question()
    nb.interrupt()
    assert "RunCancelled" in nb.outcome(sent).error
    assert is_over()
    assert nb.run("1 + 1").displays[0]["text/plain"] == "2"  # and the kernel goes on


def test_a_run_that_is_stopped_elsewhere_takes_its_question_back(nb: Kernel) -> None:
    sent = nb.send(f"%%distrain -n 2\n{STEPS}", on_a_page=True)
    nb.question()
    api.attach("1").cancel()
    assert "RunCancelled" in nb.outcome(sent).error
    assert nb.run("1 + 1").displays[0]["text/plain"] == "2"


def test_a_rank_killed_at_its_prompt(nb: Kernel) -> None:
    sent = nb.send(f"%%distrain -n 2\n{STEPS}", on_a_page=True)
    nb.question()
    os.kill(api.attach("1").status.processes[1].pid or 0, 9)
    outcome = nb.outcome(sent)
    assert "RunFailed" in outcome.error and "SIGKILL" in outcome.error
    assert is_over()


def test_a_kernel_that_dies_at_the_prompt_leaves_nothing(nb: Kernel) -> None:
    nb.send(f"%%distrain -n 2\n{STEPS}", on_a_page=True)
    nb.question()
    nb.kill()
    assert eventually(is_over)


def test_the_end_of_input_is_an_eof(nb: Kernel) -> None:
    cell = HEAD + "try: input('more? ')\nexcept EOFError: print('no more')"
    talk(nb, cell, [("[rank 0] more? ", "\x04")], "-n 1")
    assert "no more" in log()


def test_nobody_can_answer_where_stdin_is_not_allowed(nb: Kernel) -> None:
    outcome = nb.run(f"%%distrain -n 2 --debug\n{STEPS}")
    assert "breakpoint() can't ask anyone in a run" in outcome.error
    assert "not wait" not in log()
    outcome = nb.outcome(nb.send(f"%%distrain -n 2 --no-wait\n{STEPS}", on_a_page=True))
    assert eventually(lambda: is_over(2))
    assert "breakpoint() can't ask anyone in a run" in log(2)


def test_clocks_stand_still_while_a_rank_is_asked(nb: Kernel) -> None:
    cell = GROUP + "if rank == 1: breakpoint()\ndist.all_reduce(loss)\nprint('sum', loss.item())"
    options = "-n 2 --timeout 15 --hang-after 2 --stop-when-hung"
    sent = nb.send(f"%%distrain {options}\n{cell}", on_a_page=True)
    nb.question()
    assert eventually(lambda: api.attach("1").status.note == "rank 1 waits at a prompt")
    time.sleep(16)
    nb.answer("c")
    outcome = nb.outcome(sent)
    assert not outcome.error
    assert "stands still" not in log()


def test_a_primary_that_has_ended_waits_for_a_prompt(nb: Kernel) -> None:
    sent = nb.send(f"%%distrain -n 2\n{STEPS}", on_a_page=True)
    nb.question()
    assert eventually(lambda: "got 2" in log())
    time.sleep(4)
    nb.answer("c")
    assert not nb.outcome(sent).error
    assert "[rank 1] got 22" in log()


def test_a_worker_of_a_data_loader_asks(nb: Kernel) -> None:
    cell = (
        HEAD
        + """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, index):
        if index == 1: breakpoint()
        return index
print("sum", sum(int(batch) for batch in torch.utils.data.DataLoader(Data(), num_workers=1)))
"""
    )
    sent = nb.send(f"%%distrain -n 1\n{cell}", on_a_page=True)
    for command in ("p index", "c"):
        assert re.fullmatch(r"\[rank 0, process \d+\] ipdb> ", nb.question())
        nb.answer(command)
    assert "\n1\n" in nb.outcome(sent).text
    assert "sum 1" in log()


RUNS_ON = (
    HEAD
    + """
import time
def train():
    step = 0
    while not os.path.exists("stop"):
        step += 1
        time.sleep(0.05)
    return step
print("steps", train() > 0)
"""
)


def test_debug_stops_a_rank_where_it_is(nb: Kernel, notebook_folder: Path) -> None:
    nb.run(f"%%distrain -n 2 --no-wait\n{RUNS_ON}")
    sent = nb.send("%distrain debug --rank 1", on_a_page=True)
    for command in ("p step > 0", "p rank", "n", "w", "c"):
        assert nb.question() == "[rank 1] ipdb> "
        nb.answer(command)
    outcome = nb.outcome(sent)
    assert not outcome.error
    assert "\nTrue\n" in outcome.text and "train()" in outcome.text
    (notebook_folder / "stop").touch()
    assert eventually(is_over)
    assert api.attach("1").state == "succeeded"


def test_debug_looks_at_a_rank_in_a_collective(nb: Kernel, notebook_folder: Path) -> None:
    cell = (
        GROUP
        + "if rank:\n    import time\n    while not os.path.exists('stop'): time.sleep(0.05)\n"
    )
    nb.run(f"%%distrain -n 2 --no-wait\n{cell}batch = 64\ndist.barrier()\nprint('on')")
    assert eventually(lambda: (api.attach("1").folder / "where-0.json").exists())
    sent = nb.send("%distrain debug", on_a_page=True)
    for command in ("p batch", "ranks p rank", "c"):
        assert nb.question() == "[rank 0] ipdb> "
        nb.answer(command)
    outcome = nb.outcome(sent)
    assert "The rank is in C code" in outcome.text
    assert "\n64\n" in outcome.text and "here: 0\nrank 1: 1\n" in outcome.text
    (notebook_folder / "stop").touch()
    assert eventually(is_over)
    assert log().count("] on") == 2


def test_quitting_in_a_collective_fails_the_run(nb: Kernel) -> None:
    cell = GROUP + "if rank:\n    import time; time.sleep(600)\ndist.barrier()"
    nb.run(f"%%distrain -n 2 --no-wait\n{cell}")
    assert eventually(lambda: (api.attach("1").folder / "where-0.json").exists())
    time.sleep(3)
    sent = nb.send("%distrain debug --rank 0", on_a_page=True)
    nb.question()
    nb.answer("q")
    nb.outcome(sent)
    assert eventually(is_over)
    assert "quit at its prompt, in Cell In[2], line" in api.attach("1").status.error


def test_a_failed_rank_waits_for_debug(nb: Kernel) -> None:
    cell = HEAD + "def f(x):\n    return 1 / x\nif rank: f(0)"
    nb.run(f"%%distrain -n 2 --no-wait --debug\n{cell}")
    assert eventually(lambda: api.attach("1").status.note == "rank 1 waits at a prompt")
    time.sleep(3)
    sent = nb.send("%distrain debug", on_a_page=True)
    for command in ("p x", "q"):
        assert nb.question() == "[rank 1] ipdb> "
        nb.answer(command)
    assert "\n0\n" in nb.outcome(sent).text
    assert eventually(is_over)
    assert "ZeroDivisionError" in api.attach("1").status.error


def test_whoever_leaves_a_running_rank_lets_it_go_on(nb: Kernel, notebook_folder: Path) -> None:
    nb.run(f"%%distrain -n 1 --no-wait\n{RUNS_ON}")
    sent = nb.send("%distrain debug", on_a_page=True)
    nb.question()
    nb.interrupt()
    assert "goes on: %distrain cancel 1 stops it" in nb.outcome(sent).text
    assert eventually(lambda: not api.attach("1").status.note)
    (notebook_folder / "stop").touch()
    assert eventually(is_over)
    assert api.attach("1").state == "succeeded"


def test_what_cannot_be_debugged(nb: Kernel) -> None:
    nb.run("%%distrain -n 1\nprint(1)")
    outcome = nb.outcome(nb.send("%distrain debug", on_a_page=True))
    assert "run 1 (run-1) has ended, and its ranks with it" in outcome.error
    nb.run("%%distrain -n 1 --no-wait\nimport time; time.sleep(60)")
    assert "nothing that shows this notebook can answer" in nb.run("%distrain debug").error
    outcome = nb.outcome(nb.send("%distrain debug --rank 4", on_a_page=True))
    assert "invalid --rank 4: run 2 (run-2) has no rank 4; it has rank 0" in outcome.error
    api.attach("2").cancel()
    outcome = nb.run("%%distrain --on vertex --debug\nprint(1)")
    assert "--debug has no meaning on Vertex AI" in outcome.error


TIMED = (
    HEAD
    + """
import datetime, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=4))
pair = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=5))
loss = torch.ones(1)
"""
)


@pytest.mark.parametrize("group", ["None", "pair"])
def test_a_collectives_timeout_waits_for_a_prompt(nb: Kernel, group: str) -> None:
    cell = TIMED + f"if rank == 1: breakpoint()\ndist.all_reduce(loss, group={group})\nprint(loss)"
    sent = nb.send(f"%%distrain -n 2\n{cell}", on_a_page=True)
    nb.question()
    time.sleep(9)
    nb.answer("c")
    outcome = nb.outcome(sent)
    assert not outcome.error
    assert log().count("tensor([2.])") == 2


def test_without_a_prompt_a_collective_has_its_timeout(nb: Kernel) -> None:
    cell = TIMED + "began = time.time()\nif rank == 1: time.sleep(30)\n"
    cell += "try: dist.all_reduce(loss)\n"
    cell += "except RuntimeError: print('after', round(time.time() - began)); raise"
    outcome = nb.outcome(nb.send(f"%%distrain -n 2\n{cell}", on_a_page=True))
    assert "gloo:all_reduce has waited 4 s, its group's timeout" in outcome.error
    assert re.search(r"\[rank 0\] after [45]\b", log())


def test_pdb_asks_where_there_is_no_ipython(nb: Kernel) -> None:
    cell = HEAD + "import sys\nsys.modules['IPython'] = None\nvalue = 6\nbreakpoint()\nprint(value)"
    sent = nb.send(f"%%distrain -n 1\n{cell}", on_a_page=True)
    for command in ("p value", "ranks p value * 2", "value = 8", "c"):
        assert nb.question() == "[rank 0] (Pdb) "
        nb.answer(command)
    assert "> Cell In[2](8)<module>()" in (text := nb.outcome(sent).text)
    assert "\n6\n" in text and "here: 12\n" in text
    assert "[rank 0] 8" in log()


def test_ranks_of_mpirun_ask(nb: Kernel) -> None:
    cell = HEAD + "value = rank * 3\nif rank: breakpoint()\nprint('has', value)"
    outcome = talk(nb, cell, at_prompt(1, "p value", "c"), "-n 2 --launcher mpi")
    assert not outcome.error
    assert "\n3\n" in outcome.text
    assert "[rank 1] has 3" in log()
