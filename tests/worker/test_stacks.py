"""What tells where a rank is leaves the program's own files alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
