"""A cell that stays at `[*]` beside an idle kernel, or a kernel of unknown state, and the way out.

ipykernel 7.0 to 7.3 sends its answers by the socket that requests come by. The socket's file
descriptor tells of news once; what comes just when an answer is sent is told to nobody. Here one
answer waits for that request, so that it happens each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.jupyter import KERNEL_IS_IDLE, NOTEBOOK, OpenNotebook
from tests.conftest import eventually
from tests.embedding.environments import kernels_of
from tests.embedding.spaces import Space, SpaceNotebook, give
from tests.kernels import kernel

LATE = """import pathlib, time, zmq
class Late:
    number = 0
    def __init__(self, socket):
        self.socket = socket
    def __getattr__(self, name):
        return getattr(self.socket, name)
    def send_multipart(self, *words, **options):
        Late.number -= 1
        if Late.number == 0:
            pathlib.Path("sending").touch()
            while not self.socket.get(zmq.EVENTS) & zmq.POLLIN:
                time.sleep(0.01)
            time.sleep(1)  # what the server closes just then is news too
        return self.socket.send_multipart(*words, **options)
manager = get_ipython().kernel.shell_channel_thread.manager
manager._shell_socket = Late(manager._shell_socket)"""
CELLS = (LATE, "Late.number = 1", "print('first')", "print('second')")
# The server asks a new kernel twice what it is, over connections that it closes; the page is next.
AT_START = f"{LATE}\nLate.number = 2"
LONG_ENOUGH_MS = 5000
STATE = f"() => {NOTEBOOK}.context.sessionContext.kernelDisplayStatus"


@pytest.fixture
def unaided(page: Page) -> Page:
    """A page in which nothing of our own reconnects."""
    page.goto("about:blank")
    return page


@pytest.fixture
def overlooking(private: Space) -> Iterator[Space]:
    """Its new kernels overlook what a page asks first."""
    home = private.folder.parent
    startup = home / ".ipython/profile_default/startup/late.py"
    startup.parent.mkdir(parents=True, exist_ok=True)
    startup.write_text(AT_START)
    give(home / ".ipython")
    yield private
    startup.unlink()


class Unwatched(OpenNotebook):
    """One that is open as soon as there is a kernel, whether or not it answers."""

    IDLE = OpenNotebook.CONNECTED


def run_overlooked(notebook: OpenNotebook) -> None:
    """Start the third cell when the kernel is about to answer the second."""
    sending = notebook.path.parent / "sending"
    sending.unlink(missing_ok=True)
    notebook.run_cell(0)
    notebook.wait_for_cell(0, 60)
    notebook.run_cell(1)
    assert eventually(sending.exists)
    notebook.run_cell(2)


def test_reconnecting_brings_it_and_those_after_it_on(private: Space, unaided: Page) -> None:
    notebook = OpenNotebook(unaided, private, private.write("overlooked", *CELLS))
    run_overlooked(notebook)
    notebook.run_cell(3)
    unaided.wait_for_timeout(LONG_ENOUGH_MS)
    waiting = unaided.locator(".jp-InputPrompt", has_text="[*]")
    expect(waiting).to_have_count(2)
    notebook.command("kernelmenu:reconnect-to-kernel")
    expect(waiting).to_have_count(0)
    expect(unaided.locator(".jp-Cell").nth(2)).to_contain_text("first")
    expect(unaided.locator(".jp-Cell").nth(3)).to_contain_text("second")


def test_reconnecting_makes_an_unknown_kernel_known(overlooking: Space, unaided: Page) -> None:
    notebook = Unwatched(unaided, overlooking, overlooking.write("unknown", "print('known')"))
    unaided.wait_for_timeout(LONG_ENOUGH_MS)
    assert unaided.evaluate(STATE) == "unknown"
    notebook.command("kernelmenu:reconnect-to-kernel")
    unaided.wait_for_function(KERNEL_IS_IDLE)
    notebook.run_cell(0)
    expect(unaided.locator(".jp-Cell").first).to_contain_text("known")


def test_one_more_connection_brings_on_a_cell_in_our_tests(private: Space, page: Page) -> None:
    notebook = SpaceNotebook(page, private, private.write("awaited", *CELLS))
    run_overlooked(notebook)
    notebook.wait_for_cell(2, 60)
    expect(page.locator(".jp-Cell").nth(2)).to_contain_text("first")


def test_one_more_connection_opens_a_notebook_in_our_tests(overlooking: Space, page: Page) -> None:
    notebook = SpaceNotebook(page, overlooking, overlooking.write("opened", "print('known')"))
    notebook.run_cell(0)
    expect(page.locator(".jp-Cell").first).to_contain_text("known")


def test_one_more_connection_brings_on_a_request_without_a_page(
    private_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", kernels_of(private_python, tmp_path / "jupyter"))
    with kernel(tmp_path, dict(os.environ)) as started:
        assert not started.run(LATE).error
        started.send("Late.number = 1")
        assert eventually((tmp_path / "sending").exists)
        assert started.outcome(started.send("print('first')")).text == "first\n"
