"""What keeps a cell from running, on a page: the panel, and repairs that change the cell."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.jupyter import OpenNotebook

OPEN = Callable[..., OpenNotebook]
BROKEN = "%%distrain -n 1 --nmae first\nprint(np.zeros(3).sum())"
NAMED = "%%distrain -n 1 --name first\nprint(np.zeros(3).sum())"
WHOLE = "%%distrain -n 1 --name first\nimport numpy as np\nprint(np.zeros(3).sum())"


def panel(page: Page) -> Locator:
    return page.locator(".dn-problem")


def source(opened: OpenNotebook) -> str:
    return "".join(opened.save()["cells"][0]["source"])


def repair(page: Page, name: str) -> None:
    panel(page).get_by_role("button", name=name).click()
    expect(panel(page).get_by_role("status")).to_have_text("The cell is changed: run it again")


def test_repairs_change_the_cell_until_it_runs(notebook: OPEN) -> None:
    opened = notebook("problem", BROKEN)
    page = opened.page
    opened.run_cell(0)
    expect(panel(page)).to_contain_text("no option --nmae; did you mean --name?")
    expect(panel(page).locator("mark")).to_have_text("--nmae first")
    expect(page.locator(".jp-Cell")).not_to_contain_text("OptionError")
    repair(page, "Write --name")
    assert source(opened) == NAMED

    opened.run_cell(0)
    expect(panel(page)).to_contain_text("Cell In[2], line 2")
    expect(panel(page).locator(".dn-marked mark")).to_have_text("np")
    repair(page, "Add import numpy as np")
    assert source(opened) == WHOLE

    opened.run_cell(0)
    expect(panel(page)).to_have_count(0)
    expect(page.locator(".distrain .dn-badge")).to_contain_text("succeeded")


def test_a_repair_whose_kernel_is_gone_gives_its_line(notebook: OPEN) -> None:
    opened = notebook("left", NAMED)
    page = opened.page
    opened.run_cell(0)
    button = panel(page).get_by_role("button", name="Add import numpy as np")
    button.wait_for()
    opened.shut_down_kernel()
    button.click()
    expect(panel(page).get_by_role("status")).to_contain_text("import numpy as np")
    assert source(opened) == NAMED


def test_a_warning_with_a_repair_stands_above_the_run(notebook: OPEN) -> None:
    opened = notebook("warned", "%%distrain -n 1\ndef later(): return np.ones(1)\nprint(1)")
    page = opened.page
    opened.run_cell(0)
    expect(page.locator(".distrain .dn-badge")).to_contain_text("succeeded")
    expect(panel(page)).to_have_attribute("aria-label", "warning")
    repair(page, "Add import numpy as np")
    assert source(opened).startswith("%%distrain -n 1\nimport numpy as np\n")
