"""A notebook that has imported a framework finds its first run's fork server ready."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from distrain_nb import api
from distrain_nb.worker.files.request import Warming
from distrain_nb.worker.files.status import Owner
from distrain_nb.worker.machine import memory
from distrain_nb.worker.supervisor.forkserver import ForkServer
from tests.conftest import eventually
from tests.kernels import Kernel, kernel

LOAD = "%load_ext distrain_nb"
MODULES = ["numpy", "torch"]
# A namespace of this kernel alone, in which little memory is available.
LITTLE_MEMORY = """
import ctypes, pathlib
from ctypes import c_char_p
libc = ctypes.CDLL(None, use_errno=True)
assert not libc.unshare(0x20000), "needs root: it has a /proc/meminfo of its own"
assert not libc.mount(b"none", b"/", None, 0x44000, None)
fake = pathlib.Path("meminfo").absolute()
fake.write_text("MemTotal: 8000000 kB\\nMemAvailable: 1000000 kB\\n")
assert not libc.mount(str(fake).encode(), b"/proc/meminfo", None, 0x1000, None)
"""


def started(word: str) -> list[psutil.Process]:
    """Our own processes that this test has started."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "environ", "status"])
        if (process.info["environ"] or {}).get("WARMED_IN") == word
        and any("distrain_nb." in each for each in process.info["cmdline"] or ())
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.fixture
def word(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def nb(home: Path, notebook_folder: Path, word: str) -> Iterator[Kernel]:
    """A kernel with an environment, and so a fork server, of its own."""
    with kernel(notebook_folder, {**os.environ, "WARMED_IN": word}) as fresh:
        yield fresh


def server(word: str) -> psutil.Process:
    """The fork server, once it waits for a run."""

    def ready() -> list[psutil.Process]:
        return [each for each in started(word) if "--warm" in each.info["cmdline"]]

    assert eventually(ready)
    return ready()[0]


def test_the_first_run_comes_from_a_server_that_was_warm(nb: Kernel, word: str) -> None:
    nb.run(LOAD)
    assert not nb.run("import torch").error
    warm = server(word)
    code = "import os, torch\nfound = os.nice(0), torch.get_num_threads()"
    told = nb.run(f"%%distrain -n 2 --result found --name first\n{code}")
    assert not told.error, told.traceback
    run = api.attach("first")
    assert run.results["found"] == (os.nice(0), max(1, (os.cpu_count() or 1) // 2))
    assert warm.is_running()
    servers = [
        p for p in started(word) if "distrain_nb.worker.supervisor.forkserver" in p.info["cmdline"]
    ]
    assert servers == [warm]
    nb.run("import numpy\nimport torch")
    nb.kill()
    assert warm.is_running(), "it has had a run, and stays for the next"


@pytest.mark.parametrize(("setting", "expected"), [("on", True), ("off", False)])
def test_the_kernel_imports_what_a_cell_will_need(nb: Kernel, setting: str, expected: bool) -> None:
    nb.run(f"{LOAD}\n%distrain config warm={setting}")
    nb.run("import torch")
    look = (
        "import sys, threading\n"
        "[each.join() for each in threading.enumerate() if 'import_ours' in each.name]\n"
        "print('distrain_nb.ui.monitor' in sys.modules)"
    )
    assert nb.run(look).text == f"{expected}\n"


def test_the_server_imports_while_the_cell_is_read(nb: Kernel, word: str) -> None:
    """Seen where no run follows, whose own request might start the server first."""
    nb.run(LOAD)
    assert not nb.run("%%distrain -n 2 --dry-run\nimport torch").error
    assert not started(word)
    assert "undefined" in nb.run("%%distrain -n 2\nimport torch\nundefined").error
    assert server(word).info["cmdline"][-1] == "torch"


def test_a_server_goes_with_the_kernel_that_never_had_a_run(nb: Kernel, word: str) -> None:
    nb.run(f"import torch\n{LOAD}")
    warm = server(word)
    nb.kill()
    assert eventually(lambda: not warm.is_running())
    assert not started(word)


@pytest.mark.parametrize(
    ("reason", "cells"),
    [
        ("switched off", ["%distrain config warm=off", "import torch"]),
        ("short of memory", [LITTLE_MEMORY, "import torch"]),
        ("no framework", ["import json, numpy, pandas"]),
    ],
)
def test_nothing_is_started(nb: Kernel, word: str, reason: str, cells: list[str]) -> None:
    """What decides is a process that the kernel starts; none follows it."""
    for cell in (LOAD, *cells):
        outcome = nb.run(cell)
        assert not outcome.error, (reason, outcome.traceback)
    asked = nb.run("from distrain_nb.magics import warming\nprint(sorted(warming._requested))").text
    assert ("torch" in asked) == (reason != "no framework")
    assert eventually(lambda: not started(word))


@pytest.mark.parametrize(
    "spoil",
    [
        "import os, tempfile; os.chdir(gone := tempfile.mkdtemp()); os.rmdir(gone)",
        "import sys; sys.executable = '/nothing/here'",
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))",
        "import sys; sys.modules['torch'] = None; sys.modules['tensorflow'] = object()",
    ],
)
def test_no_cell_is_harmed(nb: Kernel, spoil: str) -> None:
    nb.run(LOAD)
    outcome = nb.run(f"import torch\n{spoil}\nprint('done')")
    assert (outcome.text, outcome.error, outcome.displays) == ("done\n", "", [])
    assert nb.run("1 + 1").displays[0]["text/plain"] == "2"


def test_what_a_control_group_leaves(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    for name, text in {
        "proc/meminfo": "MemTotal: 100 kB\nMemAvailable:  80 kB\n",
        "proc/self/cgroup": "4:memory:/a\n2:cpu,cpuacct:/a\n0::/b/c\n",
        "groups/b/memory.max": "70000\n",
        "groups/b/memory.current": "50000\n",
        "groups/b/memory.stat": "anon 5\ninactive_file 10000\n",
        "groups/b/c/memory.max": "max\n",
        "groups/b/c/memory.current": "50000\n",
        "groups/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
        "groups/memory/a/memory.usage_in_bytes": "40000\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory.available(proc, groups) == 70000 - 40000
    (groups / "memory/a/memory.limit_in_bytes").write_text("45000\n")
    assert memory.available(proc, groups) == 5000
    (groups / "b/memory.max").unlink()
    (groups / "memory/a/memory.limit_in_bytes").unlink()
    assert memory.available(proc, groups) == 80 << 10


# As MKL does: C code at the end of the thread that has imported it. It takes half a second.
ENDS_SLOWLY = """
import ctypes, os, threading
libc, key = ctypes.CDLL(None), ctypes.c_uint()
assert not libc.pthread_key_create(ctypes.byref(key), libc.usleep)
assert not libc.pthread_setspecific(key, ctypes.c_void_p(500_000))
THREAD = threading.get_native_id()
"""


def test_nothing_is_forked_while_the_thread_that_imports_is_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_slowly.py").write_text(ENDS_SLOWLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    server = ForkServer(tmp_path / "address", 1.0)
    server._warm(Warming(Owner.of(os.getpid()), ("ends_slowly",)))
    server._end_warming()
    thread = importlib.import_module("ends_slowly").THREAD
    assert not Path(f"/proc/self/task/{thread}").exists()
