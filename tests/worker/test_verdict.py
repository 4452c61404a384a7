"""The sentence about a run that makes no progress, from what its ranks were seen to do."""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.worker.machine import waits
from distrain_nb.worker.machine.connections import ITSELF, OUTSIDE, RANK
from distrain_nb.worker.machine.waits import ChildLook, Look
from distrain_nb.worker.supervisor.acts import SeenRank, doing
from distrain_nb.worker.supervisor.verdict import judge
from tests.conftest import eventually

LINE = ["Cell In[7]", 31, "<module>", 10, True, True]
OTHER_LINE = ["Cell In[7]", 12, "<module>", 4, True, True]
REDUCES = ["torch/distributed/distributed_c10d.py", 9, "all_reduce", 5, False, True]
PENDING = {"op_id": 4, "profiling_name": "gloo:all_reduce", "input_sizes": [[8]]}


def look(call: str = "futex", *, moment: int = 0, **changes: Any) -> Look:
    """A process that rests, `moment` ticks after the first look."""
    of_time = {name: moment * by for name, by in changes.pop("grows", {}).items()}
    fields = {"state": "S", "cpu": 0, "main_cpu": 0, "below": 0, "io": 0, "switches": 0}
    return Look(**{**fields, "call": call, "target": "", **changes, **of_time})


def rank(number: int, *frames: list[Any], call: str = "futex", **changes: Any) -> SeenRank:
    """A rank whose main thread had these frames, innermost first, at both samples."""
    loop, others = changes.pop("loop", ""), changes.pop("others", [])
    looks = [look(call, moment=moment, **changes) for moment in (0, 200)]
    sample = [{"name": "MainThread", "main": True, "frames": list(frames), "loop": loop}]
    sample += [{"name": "", "main": False, "frames": [frame]} for frame in others]
    pending = [PENDING] if REDUCES in frames else []
    answer = {"samples": [sample, sample], "pending": pending}
    return SeenRank(f"rank {number}", looks, 2.0, answer)


def said(*ranks: SeenRank) -> str:
    verdict = judge([doing(seen) for seen in ranks])
    return verdict.text if verdict else ""


def waiting(*numbers: int) -> list[SeenRank]:
    return [rank(number, REDUCES, LINE) for number in numbers]


def test_all_ranks_at_one_place() -> None:
    assert said(*waiting(0, 1, 2, 3)) == "all 4 ranks are at Cell In[7], line 31, in all_reduce"


DEAD = (ChildLook(5, "python", "Z"),)
STUCK = {
    "waits for a lock": rank(2, OTHER_LINE),
    "waits for a DataLoader worker that has died": rank(
        2, ["torch/utils/data/dataloader.py", 1, "_next_data", 3, False, True], OTHER_LINE,
        call="poll", children=DEAD,
    ),
    "waits for an answer on a socket": rank(2, OTHER_LINE, call="recv", target="socket:[7]"),
    "waits for /data/shard.tar": rank(2, OTHER_LINE, call="read", target="/data/shard.tar"),
    "waits for a lock on the file /data/.lock": rank(
        2, OTHER_LINE, call="flock", target="/data/.lock"
    ),
    "waits for step() of xla": rank(
        2, ["/venv/site-packages/xla/a.py", 1, "step", 3, False, True], OTHER_LINE
    ),
    "waits for input that nobody gives": rank(2, OTHER_LINE, call="read", target="pipe:[7]"),
    "waits in a loop of short sleeps": rank(2, OTHER_LINE, call="sleep", grows={"switches": 1}),
    "runs in a loop": rank(2, [*OTHER_LINE[:5], False], call="", state="R", loop="while"),
}  # fmt: skip


LOCKS = {
    "flock": "fcntl.flock(file, fcntl.LOCK_EX)",
    "lockf": "fcntl.lockf(file, fcntl.LOCK_EX)",
}


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_a_lock_on_a_file_is_seen(lock: str, tmp_path: Path) -> None:
    """By the system call in which a process waits for one that another has."""
    code = f"import fcntl, sys, time; file = open(sys.argv[1], 'w'); {lock}; print(flush=True)"
    command = [sys.executable, "-c", f"{code}; time.sleep(600)", str(tmp_path / "lock")]
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE)) for _ in "12"
        ]
        for process in processes:
            stack.callback(process.kill)
        readable, _, _ = select.select([process.stdout for process in processes], [], [], 60)
        (waiting,) = (process.pid for process in processes if process.stdout not in readable)
        assert eventually(lambda: waits_of(waiting) == ("flock", str(tmp_path / "lock")))


def waits_of(pid: int) -> tuple[str, str]:
    seen = waits.look([pid], {})[pid]
    return seen.call, seen.target


@pytest.mark.parametrize("words", STUCK)
def test_one_rank_is_odd(words: str) -> None:
    others = "ranks 0, 1, 3 wait in all_reduce (Cell In[7], line 31)"
    odd = f"rank 2 {words} (Cell In[7], line 12)"
    assert said(*waiting(0, 1), STUCK[words], *waiting(3)) == f"{others}; {odd}"


STEPS = ["/venv/site-packages/jax/_src/api.py", 1, "block_until_ready", 3, False, True]
HEALTHY = {
    "its GPU computes": replace(rank(2, STEPS, OTHER_LINE), gpu=90.0),
    "a child computes": rank(2, OTHER_LINE, call="wait", grows={"below": 1}),
    "bytes flow": rank(2, OTHER_LINE, call="read", grows={"io": 1000}),
    "a download": rank(2, OTHER_LINE, call="recv", grows={"switches": 1}),
    "it sleeps": rank(2, OTHER_LINE, call="sleep"),
    "one long call": rank(2, OTHER_LINE, call="", state="R"),
    "one long call in a loop": rank(2, OTHER_LINE, call="", state="R", loop="while"),
    "a for loop": rank(2, [*OTHER_LINE[:5], False], call="", state="R", loop="for"),
    "a recursion": rank(2, [*OTHER_LINE[:5], False], call="", state="R"),
    "other threads compute": rank(2, OTHER_LINE, grows={"cpu": 1}),
    "other threads want to compute": rank(2, OTHER_LINE, threads_run=True),
    "a server's answer, in bursts": rank(
        2, OTHER_LINE, call="poll", answerer=OUTSIDE, grows={"switches": 0.01}
    ),
    "it waits for a limited time": rank(2, OTHER_LINE, is_limited=True),
}


@pytest.mark.parametrize("why", HEALTHY)
def test_a_rank_that_gets_somewhere_is_no_alarm(why: str) -> None:
    assert said(*waiting(0, 1), HEALTHY[why]) == ""


def test_a_loop_that_calls_now_this_now_that_is_no_alarm() -> None:
    first = rank(2, [*OTHER_LINE[:3], 10, True, True], call="", state="R", loop="while")
    second = rank(2, [*OTHER_LINE[:3], 40, True, True], call="", state="R", loop="while")
    assert first.answer and second.answer
    samples = first.answer["samples"] + second.answer["samples"]
    evaluates = replace(first, answer={**first.answer, "samples": samples})
    assert said(*waiting(0, 1), evaluates) == ""


CLIENT = ["/lib/python3.11/socket.py", 9, "readinto", 3, False, True]
CHILD = ["/lib/python3.11/subprocess.py", 9, "_try_wait", 3, False, True]
RESULT = ["/lib/python3.11/concurrent/futures/_base.py", 9, "result", 3, False, True]
ASKS = {
    "a server": rank(2, OTHER_LINE, call="recv", target="socket:[7]", answerer=OUTSIDE),
    "a name server": rank(2, CLIENT, OTHER_LINE, call="poll"),
    "a child that asks a server": rank(
        2, CHILD, OTHER_LINE, call="wait", children=(ChildLook(5, "curl", "S", "poll", True),)
    ),
    "a thread that asks a server": rank(2, RESULT, OTHER_LINE, threads_outside=True),
    "a thread that serves": rank(
        2, CLIENT, OTHER_LINE, call="recv", answerer=ITSELF, others=[LINE]
    ),
}
SEEN = {
    "a rank": rank(2, CLIENT, OTHER_LINE, call="recv", answerer=RANK),
    "itself": rank(2, CLIENT, OTHER_LINE, call="recv", answerer=ITSELF),
}


@pytest.mark.parametrize("who", ASKS | SEEN)
def test_who_waits_for_somebody_unseen_may_have_its_answer_any_moment(who: str) -> None:
    verdict = judge([doing(seen) for seen in (*waiting(0, 1), (ASKS | SEEN)[who])])
    assert verdict is not None
    assert "rank 2 waits for " in verdict.text
    assert verdict.elsewhere == (who in ASKS)


def test_ranks_that_compute_while_nobody_waits_are_no_alarm() -> None:
    assert said(STUCK["runs in a loop"]) == ""


def test_ranks_that_have_stopped_or_ended() -> None:
    stopped = rank(2, OTHER_LINE, state="T")
    ended = SeenRank("rank 2", outcome="ended", earlier={"ended": OTHER_LINE})
    others = "ranks 0, 1 wait in all_reduce (Cell In[7], line 31); rank 2 "
    for seen, words in (
        (stopped, "is stopped (SIGSTOP) (last at Cell In[7], line 12)"),
        (ended, "has ended (Cell In[7], line 12)"),
    ):
        verdict = judge([doing(one) for one in (*waiting(0, 1), seen)])
        assert verdict is not None
        assert (verdict.text, verdict.certain) == (others + words, True)


def test_the_line_of_who_holds_the_lock_is_named() -> None:
    dump = 'Stack (most recent call first):\n  File "Cell In[7]", line 12 in <module>\n'
    looks = [look("", state="R", answering="S")] * 2
    words = "rank 1 holds Python's lock in a call that does not return "
    holds = SeenRank("rank 1", looks, 2.0, None, dump)
    assert said(*waiting(0), holds).endswith(words + "(Cell In[7], line 12)")
    word = {"samples": [[{"main": True, "frames": [OTHER_LINE]}]]}
    holds = SeenRank("rank 1", looks, 2.0, None, "", word)
    assert said(*waiting(0), holds).endswith(words + "(last at Cell In[7], line 12)")


@pytest.mark.parametrize("state", ["R", "D", ""])
def test_a_rank_without_cpu_time_is_not_judged(state: str) -> None:
    starved = SeenRank("rank 1", [look("", answering=state)] * 2, 2.0, None)
    assert doing(starved).words == "does not answer yet"


def test_a_rank_that_looks_for_rank_0_waits_for_it() -> None:
    """It polls the list of sockets meanwhile, which takes a CPU's time and reads much."""
    polls = ["/d/worker/rank/torch_groups.py", 67, "init_process_group", 1, False, True]
    meets = rank(1, polls, LINE, call="", state="R", grows={"io": 9000, "cpu": 1, "main_cpu": 1})
    assert said(rank(0, OTHER_LINE), meets) == (
        "rank 1 waits in init_process_group (Cell In[7], line 31); "
        "rank 0 waits for a lock (Cell In[7], line 12)"
    )


def test_a_worker_of_a_loader_is_named_before_what_it_is_made_of() -> None:
    queue = ["/lib/python3.11/multiprocessing/queues.py", 3, "get", 5, False, True]
    loads = ["torch/utils/data/dataloader.py", 1, "_next_data", 3, False, True]
    stopped = (ChildLook(5, "python", "T"),)
    assert said(*waiting(0), rank(1, queue, loads, OTHER_LINE, children=stopped)).endswith(
        "rank 1 waits for a DataLoader worker that is stopped (SIGSTOP) (Cell In[7], line 12)"
    )
