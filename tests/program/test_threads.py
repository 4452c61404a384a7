"""What a thread asks of the world is made again only if a statement starts it and waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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


def test_what_is_set_since_needs_no_thread(kernel: Kernel, server: Server) -> None:
    for text in (START, FILL.format(delay="0.05"), APART, "u = {}"):
        kernel.run(text)
    assert server.results(kernel.capture(SHOW)) == {}
