"""A run in which a reducer or a rank stops, dies or is slow."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from distrain_nb import api
from distrain_nb.errors import RunFailed
from tests.conftest import eventually

if TYPE_CHECKING:
    from distrain_nb.run import Run

# A gradient of 25 MB is one bucket. A reducer's half is more than it lets a rank send before it has
# given back the first sums.
ENDLESS = """
import datetime, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2500, 2500))
step = 0
while True:
    step += 1
    model(torch.ones(1, 2500)).sum().backward()
    assert bool((model.module.weight.grad == step).all())
    if dist.get_rank() == 0:
        print("step", step, flush=True)
    if step == 3:
        gloo = dist.group.WORLD._get_backend(torch.device("cpu"))
        gloo.options._timeout = datetime.timedelta(seconds={timeout})
"""


def pid_of(run: Run, label: str) -> int:
    return next(p.pid for p in run.status.processes if p.label == label)


def steps(run: Run) -> int:
    return run.logs(0).count("step")


def in_an_exchange(pid: int) -> bool:
    """Whether a reducer that is stopped has not yet taken what both ranks have sent."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ports = {f"{at.laddr.port:04X}" for at in psutil.Process(pid).net_connections("tcp4")}
    unread = [
        row[4]
        for row in rows
        if row[1].endswith(tuple(ports)) and row[3] == "01" and not row[4].endswith(":00000000")
    ]
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED and len(unread) == 2


def stop_in_an_exchange(run: Run, label: str) -> int:
    """Its pid.

    It may also be stopped when it has taken all that one rank may send, or has answered one rank
    alone: then that rank sends nothing more, and another moment is tried.
    """
    pid = pid_of(run, label)

    def met() -> bool:
        os.kill(pid, signal.SIGSTOP)
        if eventually(lambda: in_an_exchange(pid), within=5):
            return True
        os.kill(pid, signal.SIGCONT)
        return False

    assert eventually(met, within=120)
    return pid


def endless(timeout: float = 600) -> Run:
    """A run that has begun to train."""
    run = api.submit(ENDLESS.format(timeout=timeout), workers=1, reducers=2)
    assert eventually(lambda: steps(run) > 3 or run.status.state.final)
    return run


def test_a_reducer_that_is_killed_fails_the_run_by_its_name(home: Path) -> None:
    run = endless()
    os.kill(pid_of(run, "reducer 1"), signal.SIGKILL)
    with pytest.raises(RunFailed, match="reducer 1 failed first: killed by SIGKILL"):
        run.wait(240)


def test_a_reducer_that_stops_is_named_when_the_group_s_time_is_over(home: Path) -> None:
    run = endless(timeout=8)
    os.kill(pid_of(run, "reducer 0"), signal.SIGSTOP)
    with pytest.raises(RunFailed, match=r"reducer 0 \(127.0.0.1:\d+\) did not answer in time"):
        run.wait(240)


def test_training_goes_on_when_a_reducer_was_stopped_in_an_exchange_or_is_slow(home: Path) -> None:
    run = endless()
    pid = stop_in_an_exchange(run, "reducer 0")
    stood = steps(run)
    os.kill(pid, signal.SIGCONT)
    assert eventually(lambda: steps(run) > stood + 3)
    before = steps(run)

    def goes_on_slowly() -> bool:
        """It computes for a tenth of the time."""
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.45)
        os.kill(pid, signal.SIGCONT)
        return steps(run) > before + 3 or run.status.state.final

    assert eventually(goes_on_slowly, within=240)
    assert not run.status.state.final
    run.cancel()


def test_a_rank_that_is_killed_in_the_middle_of_a_bucket_is_named(home: Path) -> None:
    run = endless()
    reducer = stop_in_an_exchange(run, "reducer 0")
    os.kill(pid_of(run, "rank 1"), signal.SIGKILL)
    os.kill(reducer, signal.SIGCONT)
    with pytest.raises(RunFailed, match="rank 1 failed first: killed by SIGKILL"):
        run.wait(240)
