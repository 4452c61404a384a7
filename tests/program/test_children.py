"""What processes ask that the notebook starts: those that it forks, and commands that it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.program.test_equal import outcome

if TYPE_CHECKING:
    from tests.program.notebooks import Kernel, Server

RANK = "int(os.environ.get('RANK', 0))"
_COMMAND = "subprocess.run('echo $RANK', shell=True, capture_output=True, text=True).stdout"
# The cells, of which the last is what the training cell shows.
WAYS = {
    "a shell's command": ("import subprocess", f"v = {_COMMAND}", "v"),
    "a command as a list": (
        "import subprocess\ndef ask(): return subprocess.check_output(['printenv', 'RANK'])",
        "try: v = [ask()]\nexcept subprocess.CalledProcessError: v = []",
        "v",
    ),
    "os.popen": ("v = os.popen('echo $RANK').read()", "v"),
    "a command's output in a list": ("import subprocess", f"v = []\nv.append({_COMMAND})", "v"),
    "a pool of processes": (
        f"import multiprocessing\ndef ask(_): return {RANK}",
        "with multiprocessing.Pool(1) as pool:\n    v = pool.map(ask, range(2))",
        "v",
    ),
    "a pool that fills a list": (
        "from concurrent.futures import ProcessPoolExecutor\nv = []",
        f"def ask(_): return {RANK}",
        "with ProcessPoolExecutor(1) as pool: v.extend(pool.map(ask, range(2)))",
        "v",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_equal_or_refused(server: Server, way: str) -> None:
    *cells, name = WAYS[way]
    rank, run = outcome(server, cells, [name])
    assert rank and run in ("", rank)


def test_what_a_command_gave_is_told(kernel: Kernel) -> None:
    kernel.run("import subprocess")
    kernel.run("v = subprocess.check_output(['uname'])\nw = 1")
    (finding,) = kernel.capture("print(v, w)").findings
    assert finding.code == "capture.unseen"
    assert finding.message.endswith("rank or world: `v` (Cell In[2], line 1)")
