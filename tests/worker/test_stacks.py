"""What tells where a rank is leaves the program's own files alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distrain_nb.worker.files.folder import LOOK_FILE
from distrain_nb.worker.machine import waits
from distrain_nb.worker.rank import stacks
from tests.conftest import eventually


def loop() -> str:
    """The innermost loop around the line that calls."""
    caller = sys._getframe(1)
    return stacks._loop(caller.f_code, caller.f_lasti)


def test_the_innermost_loop_around_a_line() -> None:
    seen = [loop()]
    for _ in range(1):
        seen.append(loop())
        while len(seen) < 4:
            seen.append(loop())
        while len(seen) < 5:
            seen.extend([loop() for _ in range(1)])
        if seen:
            continue
    while len(seen) < 6:
        for _ in range(1):
            pass
        seen.append(loop())
    assert seen == ["", "for", "while", "while", "for", "while"]


# A program that closes all descriptors that it doesn't know, as daemons do, and goes on.
PROGRAM = """
import os, sys, time
from pathlib import Path
from distrain_nb.worker.rank import stacks
folder = Path(sys.argv[1])
stacks.NOTED_EVERY_S = stacks.ASKED_EVERY_S = 0.05
stacks.begin(folder, 0, folder)
while not (folder / "where-0.json").stat().st_size:
    time.sleep(0.01)
os.closerange(3, 64)
files = [open(folder / f"own-{number}", "w+") for number in range(20)]
time.sleep(0.5)
print("went on")
"""


def test_it_writes_into_no_file_of_the_program(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("went on\n", "")
    assert not any(path.stat().st_size for path in tmp_path.glob("own-*"))


# An import hook that holds a lock, as MLflow's does, and whatever looks for a module.
ASKED = """
import sys, threading, time
from pathlib import Path
from distrain_nb.worker.rank import stacks
folder, by_others = Path(sys.argv[1]), []
class Hook:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if threading.get_ident() != threading.main_thread().ident:
            by_others.append(name)
stacks.NOTED_EVERY_S = stacks.ASKED_EVERY_S = 0.02
sys.meta_path.insert(0, Hook)
stacks.begin(folder, 0, folder)
where = folder / "where-0.json"
for asked in ("first", "second"):
    (folder / "look.txt").write_text(asked + " 2")
    while asked not in where.read_text():
        time.sleep(0.01)
print(by_others)
"""


def test_it_imports_nothing_beside_the_program(tmp_path: Path) -> None:
    """Its thread had the lock of imports and waited for a hook's, which the main thread had."""
    command = [sys.executable, "-c", ASKED.replace("look.txt", LOOK_FILE), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# What watches ranks from a thread without Python's lock reads frames that may run just then.
STOPPED = """
import os, sys, time
from pathlib import Path
from distrain_nb.worker.rank import stacks
folder = Path(sys.argv[1])
os.environ["DISTRAIN_HANG_AFTER"] = "1"
stacks.begin(folder, 0, folder)
print("begun", flush=True)
began, largest = time.monotonic(), 0
while time.monotonic() - began < 4:
    largest = max(largest, (folder / "held-0.txt").stat().st_size)
print(largest)
"""


def test_nothing_reads_the_stacks_of_a_rank_that_was_stopped(tmp_path: Path) -> None:
    """The watchdog of `faulthandler` did as soon as the rank went on, and crashed some."""
    command = [sys.executable, "-c", STOPPED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=60)[0] == "0\n"


HELD = """
import itertools, sys
from pathlib import Path
from distrain_nb.worker.rank import stacks
folder = Path(sys.argv[1])
stacks.begin(folder, 0, folder)
print("begun", flush=True)
sum(itertools.repeat(0))
"""


def test_a_rank_that_c_code_holds_writes_its_stack(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HELD, str(tmp_path)]
    held = tmp_path / "held-0.txt"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        try:
            assert not waits.request_stack(process.pid, held, "sleep")  # which it would cut short
            time.sleep(0.2)
            assert not held.stat().st_size
            assert waits.request_stack(process.pid, held, "")
            assert eventually(lambda: "line 8 in <module>" in held.read_text())
            assert process.poll() is None
        finally:
            process.kill()


def test_a_program_that_expects_no_signal_gets_none(tmp_path: Path) -> None:
    """As after `exec`: what has no handler would end by it."""
    held = tmp_path / "held-0.txt"
    with held.open("w") as file, subprocess.Popen(["sleep", "60"], stdout=file) as process:
        try:
            assert not waits.request_stack(process.pid, held, "")
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
        finally:
            process.kill()
