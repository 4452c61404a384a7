"""What the operating system is asked for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.worker.machine.system import until_one_ends

DESCRIPTORS = Path("/proc/self/fd")
LONGER_THAN_A_TEST_MAY_S = 10_000


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "infinity"])
    yield process
    process.kill()
    process.wait()


def test_one_of_two_processes_is_waited_for(sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sleep", "0.2"]) as brief:
        until_one_ends([sleeper.pid, brief.pid], LONGER_THAN_A_TEST_MAY_S)
        assert brief.poll() is not None
        until_one_ends([sleeper.pid, brief.pid], LONGER_THAN_A_TEST_MAY_S)  # it is gone by now
    assert sleeper.poll() is None


def test_nobody_waits_for_ever_and_no_descriptor_is_left(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_before = len([*DESCRIPTORS.iterdir()])
    until_one_ends([sleeper.pid], 0.01)
    assert len([*DESCRIPTORS.iterdir()]) == open_before
    monkeypatch.delattr(os, "pidfd_open")  # as on macOS
    until_one_ends([sleeper.pid], 0.01)
