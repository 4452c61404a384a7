"""What programs print and commands to copy have dollars, which pages of Jupyter take for TeX."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.jupyter import OpenNotebook

CELLS = (
    "%%distrain -n 1\nprint('from $5 to $10 a day')\nraise ValueError('not $5 but $10')",
    "%%distrain --on ai-platform --primary complex_model_m_gpu\nprint(1)",
    "%distrain",
    "from IPython.display import HTML\nHTML('<p>as $x^2$</p>')",
)


def test_they_stay_dollars_in_what_is_shown_and_saved(
    notebook: Callable[..., OpenNotebook],
) -> None:
    opened = notebook("dollars", *CELLS)
    page = opened.page
    cells, formulas = page.locator(".jp-Cell"), page.locator("mjx-container")
    for number in range(len(CELLS)):
        opened.run_cell(number)
        opened.wait_for_cell(number, 120)
    opened.save()
    for is_saved in (False, True):
        if is_saved:
            opened.reload()
        expect(cells.nth(3).locator("mjx-container")).to_have_count(1)
        expect(cells.nth(0)).to_contain_text("from $5 to $10 a day")
        expect(cells.nth(0)).to_contain_text("not $5 but $10")
        expect(cells.nth(1)).to_contain_text("training $JOB_NAME")
        expect(cells.nth(2)).to_contain_text("not $5 but $10")
        expect(formulas).to_have_count(1)
