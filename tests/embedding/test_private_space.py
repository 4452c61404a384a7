"""A private space of Studio: distribution 4.4.1 as it starts JupyterLab there, with real runs.

Its Python is 3.12 where this machine has one, else that of the tests; see `environments.py`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.measures import kernel_process
from tests.embedding.cells import end, open_all, see_running, train
from tests.embedding.spaces import USER, Space, SpaceNotebook

OPEN = Callable[..., SpaceNotebook]
FAILING = "%%distrain -n 2 --name broken\nraise ValueError('boom')"


@pytest.fixture
def opened(private: Space, page: Page) -> OPEN:
    """Open a new notebook with the given cells: `opened("name", "first cell", …)`."""
    return lambda name, *cells: SpaceNotebook(page, private, private.write(name, *cells))


@pytest.mark.parametrize("number", range(int(os.environ.get("DISTRAIN_FIRST_RUNS", "1"))))
def test_the_first_cell_of_a_kernel_is_live_without_load_ext(opened: OPEN, number: int) -> None:
    """Of a new kernel in a new notebook; DISTRAIN_FIRST_RUNS says how often."""
    name = f"first-{number}"
    notebook = opened(name, train(name))
    notebook.run_cell(0)
    view = see_running(notebook)
    end(notebook, name, view)
    notebook.wait_for_cell(0, 120)


def test_it_runs_as_the_user_of_the_space(opened: OPEN) -> None:
    notebook = opened("user", "%%distrain -n 1 --name user\nimport os\nprint('user', os.getuid())")
    notebook.run_cell(0)
    user = USER if os.getuid() == 0 else os.getuid()
    expect(notebook.page.locator("section.distrain")).to_contain_text(f"user {user}")
    notebook.wait_for_cell(0, 120)


def test_a_failure_the_form_and_the_table_show(opened: OPEN) -> None:
    form = "import distrain_nb\ndistrain_nb.form()"
    notebook = opened("three", FAILING, form, "%distrain")
    notebook.run_cell(0)
    expect(notebook.page.locator(".dn-error .dn-cause")).to_contain_text("ValueError: boom")
    notebook.wait_for_cell(0, 120)
    notebook.run_cell(1)
    expect(notebook.page.locator(".dn-form")).to_be_visible()
    notebook.run_cell(2)
    row = notebook.page.locator(".dn-table tr", has_text="broken")
    expect(row).to_contain_text("failed")


def test_a_page_that_is_loaded_anew_goes_on_with_the_run(opened: OPEN) -> None:
    notebook = opened("anew", train("anew"))
    notebook.run_cell(0)
    see_running(notebook)
    notebook.save()
    notebook.reload(busy=True)
    view = see_running(notebook)
    end(notebook, "anew", view)


def test_a_run_whose_kernel_is_killed_goes_on_in_the_page(opened: OPEN, private: Space) -> None:
    """The server answers, whatever has become of the kernel."""
    notebook = opened("killed", train("killed"))
    notebook.run_cell(0)
    view = see_running(notebook)
    os.kill(kernel_process(notebook), signal.SIGKILL)
    expect(view.locator(".dn-badge")).to_contain_text("cancelled")


def test_the_project_s_notebooks_open(private: Space, page: Page) -> None:
    open_all(page, private)
