"""A rank's process leaves behind what Python leaves behind, and ends though something hangs."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

# As a rank does: the program's folder is its own, the end is that of its process.
RANK = """
import sys
from pathlib import Path
from distrain_nb.worker.rank import ending, program
ending.ATEXIT_WITHIN_S, ending.FINALIZED_WITHIN_S = {within}
ending.begin()
program.run(Path("program"))
ending.leave({status}, Path("program").absolute())
"""
ARCHIVES = """
import bz2, gzip, lzma, zipfile
{more}
text = gzip.open("text.gz", "wt"); text.write("text")
data = gzip.open("data.gz", "wb"); data.write(b"data")
bz = bz2.open("text.bz2", "wt"); bz.write("text")
xz = lzma.open("data.xz", "wb"); xz.write(b"data")
zipped = zipfile.ZipFile("text.zip", "w"); zipped.writestr("member", "text")
plain = open("plain.txt", "w"); plain.write("text")
"""
HOLDERS = {
    "a function reads it": "def read(): return text, data, bz, xz, zipped, plain",
    "a library holds a function": "import sys\nsys.kept = lambda: text\nclass A: pass",
    "a thread that is left": (
        "import threading, time\n"
        "def work():\n    while time: time.sleep(0.001)\n"
        "threading.Thread(target=work, daemon=True).start()"
    ),
}
ELSEWHERE = {
    "a class": "class Kept:\n    file = gzip.open('left.gz', 'wt')\nfile = Kept.file",
    "a cycle": "kept = []\nkept += [kept, gzip.open('left.gz', 'wt')]\nfile = kept[1]",
    "a generator": (
        "def opened():\n    with gzip.open('left.gz', 'wt') as file:\n        yield file\n"
        "kept = opened()\nfile = next(kept)"
    ),
    "a module of the program": "import beside\nfile = beside.file = gzip.open('left.gz', 'wt')",
    "a module of Python": "file = gzip.open('left.gz', 'wt')\ngzip.kept = file",
    "a handler of logging": (
        "import logging\nfile = gzip.open('left.gz', 'wt')\n"
        "logging.getLogger('x').addHandler(logging.StreamHandler(file))"
    ),
    "standard output": (
        "import sys\nclass Tee:\n"
        "    def __init__(self): self.file = gzip.open('left.gz', 'wt')\n"
        "    def write(self, text): self.file.write(text)\n"
        "    def flush(self): pass\n"
        "sys.stdout = Tee()\nfile = sys.stdout.file"
    ),
}
ORDER = """
import atexit, multiprocessing, os, threading, time, weakref
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
class Thing:
    def __init__(self, name): self.name = name
    def __del__(self): say("del", self.name, LIMIT, os.getpid() > 0)
LIMIT = 3
one, _private, many = Thing("one"), Thing("private"), [Thing("in a list")]
cycle = Thing("cycle"); cycle.cycle = cycle
processes = multiprocessing.get_context("fork")
ready = processes.Event()
def thread(): time.sleep(0.05); say("thread", LIMIT)
def child(): ready.wait(); say("child", LIMIT)
# The child waits for it, or two processes would race for the next line.
def first(): say("first registered"); ready.set()
atexit.register(first)
processes.Process(target=child).start()
atexit.register(say, "last registered")
atexit.register(lambda: 1 / 0)
weakref.finalize(one, say, "finalized")
threading.Thread(target=thread).start()
print("program", end="")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "main.json").write_text("[]")
    (tmp_path / "program" / "beside.py").write_text("")
    return tmp_path


def _ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True)


def _as_rank(
    folder: Path, text: str, status: int = 0, within: tuple[float, float] = (300, 300)
) -> subprocess.CompletedProcess[str]:
    (folder / "program" / "main.py").write_text(text)
    return _ran(folder, "-c", RANK.format(status=status, within=within))


@pytest.mark.parametrize("how", HOLDERS)
def test_archives_that_are_left_open_are_whole(folder: Path, how: str) -> None:
    outcome = _as_rank(folder, ARCHIVES.format(more=HOLDERS[how]))
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert gzip.decompress((folder / "text.gz").read_bytes()) == b"text"
    assert gzip.decompress((folder / "data.gz").read_bytes()) == b"data"
    assert bz2.decompress((folder / "text.bz2").read_bytes()) == b"text"
    assert lzma.decompress((folder / "data.xz").read_bytes()) == b"data"
    assert zipfile.ZipFile(folder / "text.zip").read("member") == b"text"
    assert (folder / "plain.txt").read_text() == "text"


@pytest.mark.parametrize("holder", ELSEWHERE)
def test_an_archive_is_whole_whoever_holds_it(folder: Path, holder: str) -> None:
    outcome = _as_rank(folder, f"import gzip\n{ELSEWHERE[holder]}\nfile.write('text')")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert gzip.decompress((folder / "left.gz").read_bytes()) == b"text"


def test_what_runs_at_the_end_runs_in_the_order_of_python(folder: Path) -> None:
    rank = _as_rank(folder, ORDER)
    python = _ran(folder, "program/main.py")
    assert rank.stdout == python.stdout
    assert rank.stdout.count("\n") == 9
    assert "ZeroDivisionError" in rank.stderr
    assert rank.returncode == python.returncode == 0


HANGS = {
    "atexit": (0, "import atexit, threading\natexit.register(threading.Event().wait)"),
    "__del__": (0, "import time\nclass A:\n    def __del__(self): time.sleep(1e6)\na = A()"),
    "C code with the lock": (
        3,
        "import ctypes\nclass A:\n    def __del__(self): ctypes.PyDLL(None).pause()\na = A()",
    ),
}


@pytest.mark.parametrize("where", HANGS)
def test_what_hangs_at_the_end_is_ended_with_the_same_status(folder: Path, where: str) -> None:
    status, text = HANGS[where]
    outcome = _as_rank(folder, f"print('done', end='')\n{text}", status, (0.2, 0.2))
    assert (outcome.returncode, outcome.stdout) == (status, "done")
    assert "Timeout" in outcome.stderr and "in leave" in outcome.stderr


def test_children_may_work_longer_than_what_may_hang(folder: Path) -> None:
    text = (
        "import multiprocessing, os, time\n"
        "def child(): time.sleep(2); os.write(1, b'child')\n"
        "multiprocessing.get_context('fork').Process(target=child).start()"
    )
    assert _as_rank(folder, text, 0, (0.1, 300)).stdout == "child"
