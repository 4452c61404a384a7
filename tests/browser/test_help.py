"""Pages of help at the widths that an output has."""

from __future__ import annotations

from playwright.sync_api import Browser

from distrain_nb.magics.help import help_page
from tests.browser.jupyter import new_page

LEAST = 240  # pixels of a description
PAGE = "<div style='width: {width}px'>{page}</div>"
CUT = """(least) => {
    const frame = document.querySelector(".dn-help").getBoundingClientRect();
    return [...document.querySelectorAll(".dn-help td")].filter((it) => it.textContent)
        .filter((it) => {
            const box = it.getBoundingClientRect();
            const seen = Math.min(box.right, frame.right) - box.left;
            return seen < least || box.right > frame.right + 1;
        })
        .map((it) => it.textContent);
}"""


def test_every_description_is_in_sight(browser: Browser) -> None:
    with new_page(browser) as page:
        page.set_viewport_size({"width": 1600, "height": 900})
        for width in (420, 705, 905, 1000, 1100, 1400):
            page.set_content(PAGE.format(width=width, page=help_page("all")._repr_html_()))
            assert page.evaluate(CUT, LEAST) == [], width
