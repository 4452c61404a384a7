"""A cell that stays at `[*]` beside an idle kernel, and what brings it on.

ipykernel 7.0 to 7.3 sends its answers by the socket that requests come by. The socket's file
descriptor tells of news once; what comes just when an answer is sent is told to nobody. Here one
answer waits for that request, so that it happens each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.jupyter import OpenNotebook
from tests.conftest import eventually
from tests.embedding.conftest import NEW_FOLDER
from tests.embedding.spaces import Space, SpaceNotebook, space

LATE = """import pathlib, time, zmq
class Late:
    is_next = False
    def __init__(self, socket):
        self.socket = socket
    def __getattr__(self, name):
        return getattr(self.socket, name)
    def send_multipart(self, *words, **options):
        if Late.is_next:
            Late.is_next = False
            pathlib.Path("sending").touch()
            while not self.socket.get(zmq.EVENTS) & zmq.POLLIN:
                time.sleep(0.01)
        return self.socket.send_multipart(*words, **options)
manager = get_ipython().kernel.shell_channel_thread.manager
manager._shell_socket = Late(manager._shell_socket)"""
CELLS = (LATE, "Late.is_next = True", "print('first')", "print('second')")
LONG_ENOUGH_MS = 5000


@pytest.fixture(scope="module")
def private(private_python: str, new_folder: NEW_FOLDER) -> Iterator[Space]:
    with space(new_folder(), private_python) as running:
        yield running


def run_overlooked(notebook: OpenNotebook) -> None:
    """Start the third cell when the kernel is about to answer the second."""
    sending = notebook.path.parent / "sending"
    sending.unlink(missing_ok=True)
    notebook.run_cell(0)
    notebook.wait_for_cell(0, 60)
    notebook.run_cell(1)
    assert eventually(sending.exists)
    notebook.run_cell(2)


def test_one_more_connection_brings_it_on_in_our_tests(private: Space, page: Page) -> None:
    notebook = SpaceNotebook(page, private, private.write("awaited", *CELLS))
    run_overlooked(notebook)
    notebook.wait_for_cell(2, 60)
    expect(page.locator(".jp-Cell").nth(2)).to_contain_text("first")


def test_reconnecting_brings_it_and_those_after_it_on(private: Space, page: Page) -> None:
    notebook = OpenNotebook(page, private, private.write("overlooked", *CELLS))
    run_overlooked(notebook)
    notebook.run_cell(3)
    page.wait_for_timeout(LONG_ENOUGH_MS)
    waiting = page.locator(".jp-InputPrompt", has_text="[*]")
    expect(waiting).to_have_count(2)
    notebook.command("kernelmenu:reconnect-to-kernel")
    expect(waiting).to_have_count(0)
    expect(page.locator(".jp-Cell").nth(2)).to_contain_text("first")
    expect(page.locator(".jp-Cell").nth(3)).to_contain_text("second")
