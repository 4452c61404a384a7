"""A rank's prompt in a page of JupyterLab and of Notebook 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from distrain_nb import api
from tests.browser.jupyter import NOTEBOOK_7, Lab, OpenNotebook, serve
from tests.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

LOAD = "%load_ext distrain_nb"
TWO = """%%distrain -n 2 {options}
import os
rank = int(os.environ["RANK"])
value = rank + 41
{asks}
print("went on with", value)
"""
GONE = LOAD + "\nimport distrain_nb.magics.prompts as prompts; prompts.PAGE_GONE_AFTER_S = 6"


@pytest.fixture
def seven(tmp_path: Path) -> Iterator[Lab]:
    with serve(tmp_path, NOTEBOOK_7) as running:
        yield running


def say(page: Page, prompt: str, answer: str) -> None:
    """Answer what the page asks."""
    box = page.locator("input.jp-Stdin-input")
    expect(box).to_have_count(1)  # that of the last answer has gone
    expect(page.locator(".jp-Stdin-prompt").last).to_contain_text(prompt)
    asked = box.element_handle()
    box.fill(answer)
    box.press("Enter")
    page.wait_for_function("(box) => !box.isConnected", arg=asked)


def is_over(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the newest run has ended, and none of its ranks is there."""
    monkeypatch.setenv("DISTRAIN_HOME", str(lab.home))
    status = api.runs()[0].status
    return status.state.final and all(p.outcome for p in status.processes)


def test_a_breakpoint_in_a_page(notebook: Callable[..., OpenNotebook], page: Page) -> None:
    opened = notebook("ask", LOAD, TWO.format(options="", asks="if rank: breakpoint()"))
    opened.run_cells(2)
    say(page, "[rank 1] ipdb>", "p value * 100")
    view = page.locator(".jp-OutputArea-output section.distrain")
    expect(view).to_contain_text("rank 1 waits at a prompt")
    expect(view).to_contain_text("went on with 41")  # the log moves on meanwhile
    say(page, "[rank 1] ipdb>", "c")
    opened.wait_for_cell(1, 60)
    expect(page.locator(".jp-OutputArea").last).to_contain_text("4200")
    expect(view.locator(".dn-badge")).to_contain_text("succeeded")


def test_two_ranks_at_once_in_a_page(notebook: Callable[..., OpenNotebook], page: Page) -> None:
    opened = notebook("both", LOAD, TWO.format(options="", asks="breakpoint()"))
    opened.run_cells(2)
    for rank in (0, 1):
        say(page, f"[rank {rank}] ipdb>", "ranks p value")
        say(page, f"[rank {rank}] ipdb>", "c")
    opened.wait_for_cell(1, 60)
    expect(page.locator(".jp-OutputArea").last).to_contain_text("rank 1: 42")


def test_post_mortem_and_quit_in_a_page(
    notebook: Callable[..., OpenNotebook], page: Page, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = "assert rank == 0, 'odd'"
    opened = notebook("fails", LOAD, TWO.format(options="--debug", asks=asks))
    opened.run_cells(2)
    say(page, "[rank 1] ipdb>", "p value")
    say(page, "[rank 1] ipdb>", "q")
    opened.wait_for_cell(1, 60)
    view = page.locator(".jp-OutputArea-output section.distrain")
    expect(view.locator(".dn-badge")).to_contain_text("failed")
    expect(view).to_contain_text("AssertionError: odd")
    assert is_over(lab, monkeypatch)


def test_an_interrupt_at_the_prompt_of_a_page(
    notebook: Callable[..., OpenNotebook], page: Page, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = notebook("stop", LOAD, TWO.format(options="", asks="breakpoint()"))
    opened.run_cells(2)
    expect(page.locator("input.jp-Stdin-input")).to_be_visible()
    opened.command("notebook:interrupt-kernel")
    opened.wait_for_cell(1, 60)
    expect(page.locator(".jp-OutputArea-output section.distrain .dn-badge")).to_contain_text(
        "cancelled"
    )
    assert is_over(lab, monkeypatch)


def test_a_page_that_is_closed_at_the_prompt(
    notebook: Callable[..., OpenNotebook], page: Page, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = notebook("closed", GONE, TWO.format(options="", asks="breakpoint()"))
    opened.run_cells(2)
    expect(page.locator("input.jp-Stdin-input")).to_be_visible()
    expect(page.locator("section.distrain")).to_contain_text("wait at a prompt")
    page.goto("about:blank")
    assert eventually(lambda: is_over(lab, monkeypatch))
    assert api.runs()[0].state == "failed"


def test_questions_in_notebook_7(seven: Lab, page: Page) -> None:
    asks = (
        "import getpass\nvalue = input('name? ') + '!' if rank else len(getpass.getpass('key: '))"
    )
    cell = TWO.format(options="", asks=asks)
    opened = OpenNotebook(page, seven, seven.write("seven", LOAD, cell))
    opened.run_cells(2)
    for _ in range(2):
        box = page.locator("input.jp-Stdin-input")
        expect(box).to_be_visible()
        if box.get_attribute("type") == "password":
            say(page, "[rank 0] key:", "geheim")
        else:
            say(page, "[rank 1] name?", "Ada")
    opened.wait_for_cell(1, 60)
    view = page.locator(".jp-OutputArea-output section.distrain")
    expect(view).to_contain_text("went on with Ada!")
    expect(view).to_contain_text("went on with 6")
    assert "geheim" not in page.content()


def test_a_kernel_that_is_restarted_at_the_prompt_in_notebook_7(
    seven: Lab, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = TWO.format(options="", asks="breakpoint()")
    opened = OpenNotebook(page, seven, seven.write("seven", LOAD, cell))
    opened.run_cells(2)
    expect(page.locator("input.jp-Stdin-input")).to_be_visible()
    opened.restart_kernel()
    assert eventually(lambda: is_over(seven, monkeypatch))
    assert api.runs()[0].state == "cancelled"
