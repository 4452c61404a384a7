"""What a thread asks of the world is made again only if a statement starts it and waits for it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from distrain_nb.observed import observe

if TYPE_CHECKING:
    from types import FrameType

    from tests.program.notebooks import Kernel, Server

START = "import os, threading, time\nfrom concurrent.futures import ThreadPoolExecutor"
FILL = "u = {{}}\ndef fill():\n    time.sleep({delay})\n    u['r'] = int(os.environ.get('RANK', 0))"
SHOW = "import json\nprint('RESULT', json.dumps(u))"
APART = "t = threading.Thread(target=fill)\nt.start(); t.join()"


@pytest.mark.parametrize("delay", ["0", "0.05", "0.2"])
@pytest.mark.parametrize("since", ["", "u.clear()"])
def test_a_thread_that_another_statement_waits_for_is_refused(
    kernel: Kernel, delay: str, since: str
) -> None:
    """The program had one of the two statements: an error in every rank, or nothing in `u`."""
    for text in (START, FILL.format(delay=delay), APART, since):
        kernel.run(text)
    (error,) = [f for f in kernel.capture(SHOW).findings if f.severity == "error"]
    assert error.code == "capture.thread" and "os.environ['RANK']" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "def go():\n    t = threading.Thread(target=fill)\n    t.start(); t.join()\ngo()",
        "with ThreadPoolExecutor() as pool: pool.submit(fill).result()",
        "pool = ThreadPoolExecutor(1)\npool.submit(id, 0).result()\npool.submit(fill).result()",
    ],
)
def test_a_thread_that_its_statement_waits_for_runs_again(
    kernel: Kernel, server: Server, text: str
) -> None:
    for cell in (START, FILL.format(delay="0.05"), text):
        kernel.run(cell)
    assert server.results(kernel.capture(SHOW)) == {"r": 0}


GIVE = "def give():\n    global g\n    fill()\n    g = u['r']"


@pytest.mark.parametrize(
    ("texts", "out"),
    [
        (("t = threading.Thread(target=fill)\nt.start()", "t.join()"), "u"),
        (("pool = ThreadPoolExecutor(1)\nf = pool.submit(fill)", "w = [f.result()]"), "w"),
        ((f"{GIVE}\nt = threading.Thread(target=give)", "t.start()", "t.join()"), "g"),
    ],
)
def test_a_thread_that_asks_between_the_cells_is_refused(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...], out: str
) -> None:
    """Nobody saw what was asked while no cell ran: every rank had the kernel's rank."""
    gate = threading.Event()
    monkeypatch.setattr("time.sleep", lambda _: gate.wait(60))
    *first, last = texts
    for text in (START, "lr = 1", FILL.format(delay="0"), *first):
        kernel.run(text)
    observe(kernel.observer)
    gate.set()
    while "r" not in kernel.namespace["u"] or out not in (*kernel.namespace, "w"):
        threading.Event().wait(0.001)
    kernel.run("lr = [5]")
    kernel.run(last)
    (error,) = [f for f in kernel.capture(f"print({out})").findings if f.severity == "error"]
    assert error.code == "capture.thread"
    assert not kernel.capture("print(lr)").findings


def test_what_is_set_since_needs_no_thread(kernel: Kernel, server: Server) -> None:
    for text in (START, FILL.format(delay="0.05"), APART, "u = {}"):
        kernel.run(text)
    assert server.results(kernel.capture(SHOW)) == {}


@pytest.mark.parametrize("spin", [0, 100])
def test_a_thread_that_asks_at_any_moment_is_refused(kernel: Kernel, spin: int) -> None:
    """Also while it begins, between two statements, and while what it asked is looked at: of such
    programs every fifth had the kernel's rank."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        kernel.run(f"{START}\ndef spin():\n    for _ in range({spin}): pass")
        for _ in range(12):
            kernel.run(f"{FILL.format(delay=0).replace('time.sleep(0)', 'spin()')}\n{APART}")
            errors = [f.code for f in kernel.capture(SHOW).findings if f.severity == "error"]
            assert errors == ["capture.thread"]
    finally:
        sys.setswitchinterval(interval)


def test_a_thread_that_asks_while_a_statement_begins_is_refused(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame is at no line then, and what the thread asked was nobody's."""
    gate = threading.Event()
    monkeypatch.setattr("time.sleep", lambda _: gate.wait(60))
    for text in (START, FILL.format(delay="0")):
        kernel.run(text)

    def let_ask(frame: FrameType, *_: object) -> None:
        if frame.f_globals is kernel.namespace and "join" in frame.f_code.co_names:
            gate.set()
            kernel.namespace["t"].join()

    sys.settrace(let_ask)
    try:
        kernel.run(APART)
    finally:
        sys.settrace(None)
    (error,) = [f for f in kernel.capture(SHOW).findings if f.severity == "error"]
    assert error.code == "capture.thread"


def test_what_the_extension_asks_beside_a_cell_is_its_own_matter(
    kernel: Kernel, server: Server
) -> None:
    """Its threads read `DISTRAIN_HOME` while a cell ran: an optimizer that the cell had trained was
    refused, as if it knew the world."""
    kernel.run("import json, threading\nfrom distrain_nb.config import home\nlr = 0")
    kernel.run("t = threading.Thread(target=home)")
    kernel.run("def step():\n    t.start(); t.join()\n    return 3\nlr = step()")
    program = kernel.capture("print('RESULT', json.dumps(lr))")
    assert "step()" not in program.main
    assert server.results(program) == 3
