"""What tells where a rank is leaves the program's own files alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from distrain_nb.worker.files.folder import LOOK_FILE

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
