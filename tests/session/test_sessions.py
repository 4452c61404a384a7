"""Sessions on this machine: cells find what earlier ones have made, and failures cost no names."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.api.sessions import session, start_session
from distrain_nb.errors import CaptureError, OptionError, RunNotFound
from distrain_nb.magics.sessions import run_session
from distrain_nb.run import Store
from distrain_nb.run.session import find_session
from distrain_nb.server import table
from distrain_nb.server.access import open_session
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.session import notebook
from tests.session.lab import Lab

pytestmark = pytest.mark.slow

GROUP = "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
SUM = "x = torch.ones(1)\ndist.all_reduce(x)\nprint(int(x))"


@pytest.fixture
def lab(home: Path) -> Iterator[Lab]:
    with Lab(2) as lab:
        yield lab


def test_a_cell_finds_what_an_earlier_one_has_made(lab: Lab) -> None:
    lab.here("start = 5\ndef twice(n):\n    return 2 * n")
    lab.lines("import os\nmine = start + int(os.environ['RANK'])\nthings = [mine]")
    assert lab.lines("things.append(twice(mine))\nprint(things)") == [
        "[rank 0] [5, 10]",
        "[rank 1] [6, 12]",
    ]
    assert lab.lines("print(things)", rank="1") == ["[rank 1] [6, 12]"]
    assert lab.session["things"] == [5, 10]
    assert lab.session.get("mine", "all") == {0: 5, 1: 6}
    assert lab.session.get("mine", rank=1) == 6
    with pytest.raises(KeyError, match="rank 0 of session lab has no 'thing'; did you mean things"):
        lab.session["thing"]
    lab.session.put(lr=0.5)
    assert lab.lines("print(lr)") == ["[rank 0] 0.5", "[rank 1] 0.5"]
    with pytest.raises(ValueError, match="can't be sent to session lab"):
        lab.session.put(lock=__import__("threading").Lock())


def test_a_notebook_that_also_runs_elsewhere(lab: Lab) -> None:
    notebook.run_all(lab)


def test_each_cell_is_a_run_of_its_own(lab: Lab) -> None:
    first = lab.there("print('one')\nn = 3", name="first", result="n")
    second = lab.there("from distrain_nb import log_metrics\nlog_metrics(step=1, loss=n)")
    assert (first.name, first.results["n"], first.id + 1) == ("first", 3, second.id)
    assert [line.split("] ")[1] for line in first.logs().splitlines()] == ["one", "one"]
    assert second.metrics()["loss"].tolist() == [3]
    assert second.logs() == ""
    assert first.session == "lab"
    with pytest.raises(OptionError, match="it is a cell of session lab"):
        first.resume()


def test_names_that_both_have_set_are_refused_before_the_cell_begins(lab: Lab) -> None:
    lab.here("lr = 1")
    lab.lines("lr = 2")
    assert lab.lines("print(lr)", rank="0") == ["[rank 0] 2"]
    lab.here("lr = 3")
    with pytest.raises(CaptureError) as error:
        lab.begin("print(lr)")
    (finding,) = error.value.findings
    assert "(Cell In[4], line 1) and in the ranks of session lab (Cell In[2], line 2)" in str(
        finding
    )
    assert [
        fix.apply("%%distrain --in lab\nprint(lr)").split("\n")[0] for fix in finding.fixes
    ] == [
        "%%distrain --in lab --send lr",
        "%%distrain --in lab --keep lr",
    ]
    assert lab.lines("print(lr)", keep="lr", rank="0") == ["[rank 0] 2"]
    assert lab.lines("print(lr)", rank="1", send="lr") == ["[rank 1] 3"]


def test_a_changed_definition_reaches_the_ranks_as_by_autoreload(lab: Lab) -> None:
    lab.here("class Net:\n    def name(self):\n        return 'old'")
    lab.here("def act():\n    return 'old'")
    lab.lines("net = Net()\nkept = act\nprint(net.name())")
    lab.here("class Net:\n    def name(self):\n        return 'new'")
    lab.here("def act():\n    return 'new'")
    assert lab.lines("print(net.name(), Net().name(), kept(), act())", rank="0") == [
        "[rank 0] new new new new"
    ]
    lab.here("class Net:\n    __slots__ = ('a',)\n    def name(self):\n        return 'slots'")
    run = lab.there("print(net.name(), Net().name())", rank="0")
    assert "`net` keeps the earlier class `Net`, whose layout differs" in run.logs()
    assert "[rank 0] slots slots" in run.logs()


def test_what_comes_after_a_model_has_its_parameters(lab: Lab) -> None:
    """As an optimizer does; PyTorch's takes ten seconds to import all that `step` needs."""
    lab.here("import torch\ntorch.manual_seed(0)\nnet = torch.nn.Linear(2, 1, bias=False)")
    lab.lines(GROUP + "before = net.weight.detach().clone()\nprint(before.shape)")
    lab.here("groups = [{'params': [*net.parameters()]}]")
    lab.lines("with torch.no_grad():\n    groups[0]['params'][0] += 1\nprint('stepped')")
    assert lab.lines("print((net.weight - before).tolist())", rank="1") == ["[rank 1] [[1.0, 1.0]]"]


def test_an_edited_module_reaches_the_ranks(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "edited_beside.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    file.write_text("def act():\n    return 'old'\n")
    lab.here("import edited_beside\nfrom edited_beside import act")
    cell = "print(edited_beside.act(), act())"
    assert lab.lines(cell, rank="1") == ["[rank 1] old old"]
    file.write_text("def act():\n    return 'edited'\n")
    lab.here("import importlib\nimportlib.reload(edited_beside)\nfrom edited_beside import act")
    assert lab.lines(cell, rank="1") == ["[rank 1] edited edited"]
    del sys.modules["edited_beside"]


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("if rank == 1:\n    raise ValueError('boom')\ndist.all_reduce(x)", "ValueError: boom"),
        ("if rank == 1:\n    dist.all_reduce(y)\n    raise ValueError('boom')\n"
         "dist.all_reduce(y)\ndist.barrier()", "ValueError: boom"),
        ("if rank == 1:\n    raise SystemExit(3)\ndist.recv(x, 1)", "exited with status 3"),
    ],
)  # fmt: skip
def test_a_failing_cell_costs_nothing(lab: Lab, text: str, summary: str) -> None:
    lab.lines(GROUP + "rank = dist.get_rank()\nx = torch.ones(1)\ny = torch.ones(1)")
    began = time.time()
    run = lab.there("import time\nfailed = time.time()\n" + text)
    assert run.state == "failed"
    assert run.status.error.startswith(f"rank 1 failed first: {summary}")
    assert run.status.times["failed"] - began < 20
    assert "all ranks have left their process groups" in run.logs()
    assert lab.lines("print(rank, dist.is_initialized())") == [
        "[rank 0] 0 False",
        "[rank 1] 1 False",
    ]
    assert lab.lines("dist.init_process_group('gloo')\n" + SUM) == ["[rank 0] 2", "[rank 1] 2"]


def test_groups_stay_where_no_rank_had_to_be_released(lab: Lab) -> None:
    lab.lines(GROUP + "n = 1")
    run = lab.there("raise ValueError('both')")
    assert "left their process groups" not in run.logs()
    assert lab.lines(SUM) == ["[rank 0] 2", "[rank 1] 2"]


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.sleep(60)",
        "while True: pass",
        "dist.recv(torch.ones(1), 1 - dist.get_rank())",
        "from torch.utils.data import DataLoader\n"
        "class Slow:\n"
        "    def __len__(self): return 9\n"
        "    def __getitem__(self, n):\n"
        "        import time; time.sleep(60)\n"
        "for batch in DataLoader(Slow(), num_workers=1): pass",
        "import threading\nthreading.Lock().acquire() and threading.Event().wait()",
    ],
    ids=["sleep", "loop", "recv", "loader", "lock"],
)
def test_a_stopped_cell_leaves_its_ranks_usable(lab: Lab, text: str) -> None:
    lab.lines(GROUP + "n = 41")
    run = lab.begin(text)
    assert eventually(lambda: run.state == "running")
    time.sleep(0.5)
    run.cancel()
    assert eventually(lambda: run.state == "cancelled", within=20)
    assert lab.lines("print(n + 1)") == ["[rank 0] 42", "[rank 1] 42"]


def test_a_rank_that_dies_is_named_and_the_others_keep_their_names(lab: Lab) -> None:
    lab.lines(GROUP + "rank = dist.get_rank()\nkept = [rank]")
    run = lab.there("import os, signal\nif rank == 1:\n    os.kill(os.getpid(), 9)\ndist.barrier()")
    assert run.status.error.startswith("rank 1 failed first: killed by SIGKILL")
    assert eventually(lambda: lab.session.ranks[1].outcome)
    with pytest.raises(OptionError, match="rank 1 of session lab has ended: killed by SIGKILL"):
        lab.begin("print(kept)")
    assert lab.session["kept"] == [0]
    assert lab.lines("print(kept)", rank="0") == ["[rank 0] [0]"]
    lab.session.restart(1)
    with pytest.raises(CaptureError, match="rank 1 lacks `kept`"):
        lab.begin("print(kept)")
    again = "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n" + SUM
    assert lab.lines(again) == ["[rank 0] 2", "[rank 1] 2"]


def test_a_halted_rank_hears_the_stop(lab: Lab) -> None:
    lab.lines("n = 1")
    run = lab.begin("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nimport time\n"
                    "time.sleep(60)", rank="1")  # fmt: skip
    assert eventually(lambda: run.state == "running")
    time.sleep(0.5)
    run.cancel()
    assert eventually(lambda: run.state == "cancelled", within=20)
    assert lab.lines("print(n)") == ["[rank 0] 1", "[rank 1] 1"]


def test_a_cell_waits_for_the_one_before_it(lab: Lab) -> None:
    first = lab.begin("import time\ntime.sleep(2)\nn = 1", name="long")
    second = lab.begin("print(n)")
    assert second.status.phase == f"session lab is busy with run {first.id} (long)"
    third = lab.begin("n = 2")
    third.cancel()
    assert eventually(lambda: third.state == "cancelled", within=5)
    assert not first.state.final
    assert eventually(lambda: second.state == "succeeded")
    assert "[rank 0] 1" in second.logs()


def test_what_a_cell_may_not_have_is_refused(lab: Lab) -> None:
    with pytest.raises(OptionError, match="-n is for the start of a session"):
        lab.begin("pass", ranks_per_replica=2)
    with pytest.raises(OptionError, match="--on is for the start of a session"):
        lab.begin("pass", on="slurm")
    with pytest.raises(OptionError, match="invalid --rank '7': session lab has the ranks 0, 1"):
        lab.begin("pass", rank="7")
    with pytest.raises(OptionError, match="no session 'lob'; did you mean lab"):
        lab.begin("pass", session="lob")
    with pytest.raises(OptionError, match="session lab is there already"):
        session("lab", ranks_per_replica=3)
    lab.session.stop()
    with pytest.raises(OptionError, match=r"session lab has ended \(ended\): start it again"):
        lab.begin("pass")


def test_a_session_that_cannot_be_is_refused(home: Path) -> None:
    with pytest.raises(OptionError, match="invalid --idle 'soon'"):
        start_session("lab", "soon", {})
    with pytest.raises(OptionError, match="invalid --name 'a/b' of a session"):
        start_session("a/b", "2h", {})
    with pytest.raises(OptionError, match="--result has no meaning for a session"):
        start_session("lab", "2h", {"result": "x"})
    with pytest.raises(OptionError, match="Vertex AI has no sessions"):
        start_session("lab", "2h", {"on": "vertex"})
    with pytest.raises(OptionError, match="--partition has no meaning on this machine: it is for"):
        run_session(["start", "--name", "lab", "--partition", "short"])
    with pytest.raises(OptionError, match="a session has only ranks"):
        start_session("lab", "2h", {"servers": 1, "workers": 1})
    assert not (home / "sessions" / "lab").exists()


def test_a_page_shows_sessions_and_ends_them(lab: Lab) -> None:
    lab.lines("x = 1")
    assert eventually(lambda: not lab.session.present.run)  # a moment after its run's end
    (row,) = table.LISTS["sessions"](Store(), {})["sessions"]
    assert (row["name"], row["ranks"], row["place"], row["state"]) == ("lab", "2", "local", "ready")
    assert row["last"].startswith("run ") and row["memory"] and row["limit"] == "2 h 00 min"
    with pytest.raises(RunNotFound):
        open_session(Store(), "../lab")
    open_session(Store(), "lab").stop()
    assert table.LISTS["sessions"](Store(), {})["sessions"][0]["state"] == "ended"


def test_an_idle_session_ends(home: Path) -> None:
    lab = Lab(1, idle=0.5)
    pids = [process.pid for process in lab.session.ranks.values()]
    assert eventually(lambda: lab.session.status.state is State.SUCCEEDED, within=20)
    assert lab.session.status.phase == "ended after 0.5 s without a cell"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_no_process_outlives_a_killed_session(lab: Lab) -> None:
    lab.lines("import subprocess\nchild = subprocess.Popen(['sleep', '300'])\npid = child.pid")
    status = lab.session.status
    assert status.supervisor is not None
    pids = [*(process.pid for process in status.processes), lab.session["pid"]]
    os.kill(status.supervisor.pid, signal.SIGKILL)
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), within=20)
    assert eventually(lambda: lab.session.status.state is State.FAILED, within=20)
    with pytest.raises(OptionError, match="session lab has ended"):
        lab.begin("pass")


def test_a_session_ends_with_its_block(home: Path) -> None:
    with session("block", ranks_per_replica=1) as block:
        block.run("n = 41")
        assert block.run("m = n + 1", result="m").results["m"] == 42
        assert find_session("").name == "block"
    assert block.status.state is State.SUCCEEDED
