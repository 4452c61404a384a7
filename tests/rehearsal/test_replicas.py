"""What ends the replicas of a rehearsed job, whichever cloud it is sent to."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from distrain_nb.rehearsal.engine import ReplicaSpec, processes
from distrain_nb.rehearsal.engine.bare import BareProcess
from distrain_nb.rehearsal.failures import JobFailed
from distrain_nb.rehearsal.faults import Preemption
from distrain_nb.rehearsal.replicas import AttemptEnd, Replicas

pytestmark = pytest.mark.brief

FOREVER = "echo ready; sleep 600"


class Shells:
    """A network of programs of the shell: their images don't count."""

    addresses: Mapping[str, str] = {}
    interface = "lo"
    closed = False

    def reach(self, port: int) -> str:
        return f"127.0.0.1:{port}"

    def start(self, replica: ReplicaSpec) -> BareProcess:
        return BareProcess(processes.start(["sh", "-c", *replica.arguments]))

    def close(self) -> None:
        self.closed = True


@dataclass
class Job:
    """Replicas `a`, `b`, …, and what they have printed."""

    replicas: Replicas
    cancelled: threading.Event = field(default_factory=threading.Event)
    printed: list[tuple[str, str, str]] = field(default_factory=list)

    def start(self, **programs: str) -> None:
        self.replicas.start(
            {name: ReplicaSpec(name, "", (), (text,)) for name, text in programs.items()}
        )

    def watch(self, *awaited: str, **limits: float) -> AttemptEnd:
        return self.replicas.watch(awaited, limits, self.cancelled, lambda: None)


@contextmanager
def job(*losses: Preemption) -> Iterator[Job]:
    printed: list[tuple[str, str, str]] = []
    network = Shells()
    replicas = Replicas(network, list(losses), lambda *line: printed.append(line))
    try:
        yield Job(replicas, printed=printed)
    finally:
        replicas.close()
        assert network.closed


def test_the_end_of_those_that_are_awaited() -> None:
    with job() as running:
        running.start(a="echo out; echo error >&2", b=FOREVER)
        assert running.watch("a") == AttemptEnd("completed")
        assert running.replicas.status("b") is None
    assert running.replicas.status("b")
    # A busy machine may have stopped the other one before it printed anything.
    assert sorted({*running.printed} - {("b", "o", "ready")}) == [
        ("a", "e", "error"),
        ("a", "o", "out"),
    ]


def test_one_that_fails_though_nobody_awaits_it() -> None:
    with job(Preemption("a")) as running:
        running.start(a=FOREVER, b="exit 3")
        end = running.watch("a")
        while end.cause == "lost":
            end = running.watch("a")
        assert end == AttemptEnd("failed", "b", 3)


def test_a_lost_one_is_started_again(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    program = f"test -e {mark} && exit; touch {mark}; {FOREVER}"
    with job(Preemption("b", text="ready")) as running:
        running.start(a=program, b="sleep 600")
        assert running.watch("a") == AttemptEnd("lost", "b")
        running.replicas.stop()
        running.start(a=program, b="sleep 600")
        assert running.watch("a") == AttemptEnd("completed")


def test_only_replicas_of_the_job_can_be_lost() -> None:
    with job(Preemption("c")) as running:
        running.start(a=FOREVER, b=FOREVER)
        with pytest.raises(JobFailed, match=r"c can't lose its machine: .* are a, b"):
            running.watch("a")


def test_the_limit_that_is_reached_is_named() -> None:
    with job() as running:
        running.start(a=FOREVER)
        assert running.watch("a", long=600, short=0.1) == AttemptEnd("timeout", limit="short")


def test_a_job_that_is_cancelled() -> None:
    with job() as running:
        running.start(a=FOREVER)
        running.cancelled.set()
        assert running.watch("a") == AttemptEnd("stopped")


def test_one_that_is_stopped_has_time_to_save(tmp_path: Path) -> None:
    saving = f"trap 'echo saved > {tmp_path}/saved; exit 0' TERM; echo ready; sleep 600 & wait"
    with job(Preemption("a", text="ready")) as running:
        running.start(a=saving)
        assert running.watch("a").cause == "lost"
        running.replicas.stop()
        assert running.replicas.status("a") == 0
    assert (tmp_path / "saved").read_text() == "saved\n"
