"""A notebook whose cells go to a session of two ranks, unchanged wherever these are."""

from __future__ import annotations

import time

import pytest

from distrain_nb import api
from distrain_nb.errors import CaptureError, OptionError
from distrain_nb.run.prompts import Dialogues, Question
from distrain_nb.worker.files import prompts
from tests.conftest import eventually
from tests.session.lab import Lab

GROUP = "import os, torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
SUM = "x = torch.ones(1)\ndist.all_reduce(x)\nprint(int(x))"
BOTH = ["[rank 0] 2", "[rank 1] 2"]
ASKS = """\
if rank == 1:
    name = input("who? ")
    secret = 7
    breakpoint()
    print(name, secret)
dist.all_reduce(x)"""
SLEEPS = "import time\nprint('asleep', flush=True)\nkept = [mine]\ntime.sleep(600)"


def run_all(lab: Lab) -> None:
    """Run its cells, and check what each must show."""
    names_stay(lab)
    a_rank_asks(lab)
    a_failure_costs_nothing(lab)
    a_stop_costs_nothing(lab)
    a_death_costs_one_rank(lab)


def names_stay(lab: Lab) -> None:
    lab.here("start = 5\ndef twice(n):\n    return 2 * n")
    lab.lines(GROUP + "rank = dist.get_rank()\nmine = start + rank\nthings = [mine]")
    run = lab.there("things.append(twice(mine))\n" + SUM + "\nprint(things)", result="mine")
    assert (run.state, run.results["mine"]) == ("succeeded", 5), run.status.error
    lines = [line for line in str(run.logs()).splitlines() if line.startswith("[rank")]
    assert sorted(lines) == ["[rank 0] 2", "[rank 0] [5, 10]", "[rank 1] 2", "[rank 1] [6, 12]"]
    assert lab.session["things"] == [5, 10]
    assert lab.session.get("mine", "all") == {0: 5, 1: 6}
    lab.session.put(lr=0.5)
    assert lab.lines("print(lr)", rank="1") == ["[rank 1] 0.5"]
    logged = lab.there("from distrain_nb import log_metrics\nlog_metrics(step=1, loss=mine)")
    assert sorted(logged.metrics()["loss"].tolist()) in ([5], [5, 6])
    lab.here("mine = 3")
    with pytest.raises(CaptureError, match="--send mine takes"):
        lab.begin("print(mine)")
    assert lab.lines("print(mine)", keep="mine", rank="1") == ["[rank 1] 6"]


def a_rank_asks(lab: Lab) -> None:
    prepared = api.prepare(lab.source(ASKS), session=lab.session.name, wait=False)
    run = api.start(prepared, lambda folder: prompts.listen(folder, answers=True))
    dialogues = Dialogues(run.folder)

    def asked() -> Question:
        assert eventually(lambda: dialogues.questions(), within=60), run.logs()
        (question,) = dialogues.questions()
        return question

    assert (asked().asker.process, asked().text) == (1, "who? ")
    dialogues.answer(asked(), "Ada")
    assert "db" in asked().text
    dialogues.answer(asked(), "p secret + 1")
    assert "db" in asked().text
    assert "8\n" in "".join(text for _, text in dialogues.take_printed())
    dialogues.answer(asked(), "c")
    assert eventually(lambda: run.state.final, within=60)
    prompts.end_listening(run.folder)
    assert (run.state, "[rank 1] Ada 7" in run.logs()) == ("succeeded", True), run.status.error
    refused = lab.there("if rank == 0:\n    breakpoint()")
    assert "breakpoint() can't ask anyone" in refused.status.error


def a_failure_costs_nothing(lab: Lab) -> None:
    began = time.monotonic()
    run = lab.there("if rank == 1:\n    raise ValueError('boom')\ndist.all_reduce(x)")
    assert (run.state, time.monotonic() - began < 30) == ("failed", True)
    assert "ValueError: boom" in run.status.error.splitlines()[0]
    assert "all ranks have left their process groups" in str(run.logs())
    assert lab.lines("print(things, dist.is_initialized())") == [
        "[rank 0] [5, 10] False",
        "[rank 1] [6, 12] False",
    ]
    assert lab.lines("dist.init_process_group('gloo')\n" + SUM) == BOTH


def a_stop_costs_nothing(lab: Lab) -> None:
    run = lab.begin(SLEEPS, keep="mine")
    assert eventually(lambda: str(run.logs()).count("asleep") == 2, within=60)
    run.cancel()
    assert eventually(lambda: run.state.final, within=30)
    assert run.state == "cancelled", run.status.error
    assert lab.lines("print(kept)") == ["[rank 0] [5]", "[rank 1] [6]"]


def a_death_costs_one_rank(lab: Lab) -> None:
    run = lab.there("if rank == 1:\n    os._exit(7)")
    assert (run.state, "rank 1" in run.status.error) == ("failed", True), run.status.error
    assert eventually(lambda: bool(lab.session.ranks[1].outcome), within=30)
    with pytest.raises(OptionError, match="rank 1 of session lab has ended"):
        lab.begin("print(things)")
    assert lab.session["things"] == [5, 10]
    lab.session.restart(rank=1)
    assert lab.session.ranks[1].outcome == ""
    assert lab.lines("print('rank' in globals())") == ["[rank 0] True", "[rank 1] False"]
