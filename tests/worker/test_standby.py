"""A process that was forked ahead works when it is told to, and ends with its rank."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """\
import os, sys
from pathlib import Path
from distrain_nb.worker.rank.standby import Standby
def work(path):
    print("works in", os.environ["PLACE"], flush=True)
    path.write_text("done")
    os._exit(3)
first, second, third = Standby(work), Standby(work), Standby(work)
out = Path(sys.argv[1])
first.start(out / "result", {"PLACE": "here"}, out / "log")
print(first.wait(30), (out / "result").read_text(), (out / "log").read_text())
os.close(third._writing)
other = os.open(out / "other", os.O_RDWR | os.O_CREAT)  # a file gets the number of the pipe
try:
    third.start(out / "result", {}, out / "log")
except OSError as error:
    print(error, os.fstat(other).st_size)
second.release()
print(second.wait(30))
"""


def test_a_fork_works_in_its_environment_and_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == [
        "3 done works in here", "", "the pipe has gone 0", "1",
    ], done.stderr  # fmt: skip
