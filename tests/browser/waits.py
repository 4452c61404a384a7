"""What a page needs a moment for: it draws in its next frame, late on a busy machine."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from playwright.sync_api import Error, Frame, Locator, Page, expect
from playwright.sync_api import TimeoutError as NotYet


def becomes(place: Page | Locator, function: str, value: Any) -> None:
    """Wait until a JavaScript function gives the value; of a locator, it gets the element."""
    whole = isinstance(place, Page)
    page, element = (place, None) if whole else (place.page, place.element_handle())
    same = f"([it, value]) => JSON.stringify(({function})(it)) === JSON.stringify(value)"
    with contextlib.suppress(Error):
        page.wait_for_function(same, arg=[element, value], polling=100)
    found = place.evaluate(function)
    assert found == value, found


def holds(frame: Frame, condition: str, arg: Any = None, timeout_s: float = 90.0) -> None:
    """Wait until an expression is true in a frame, which may forbid `eval`, and with it
    `wait_for_function`. Raises TimeoutError of Playwright."""
    end = time.monotonic() + timeout_s
    while not frame.evaluate(condition, arg):
        if time.monotonic() > end:
            raise NotYet(f"not within {timeout_s:g} s: {condition}")
        frame.page.wait_for_timeout(100)


def draw(figure: Locator) -> None:
    """Bring a figure into sight, which makes its live chart; a theme's change replaces it."""
    expect(figure).to_be_visible()
    for _ in range(3):
        with contextlib.suppress(Error):
            figure.scroll_into_view_if_needed()
            break
    expect(figure).to_have_attribute("data-drawn", "")


# What can have the focus while JupyterLab takes its keys, as `x`, which cuts the cell.
TAKEN = """() => {
    const focusable = "[tabindex], button, input, select, textarea, summary, iframe";
    return [...document.querySelectorAll(focusable)]
        .filter((it) => !it.closest("[data-lm-suppress-shortcuts]"))
        .map((it) => it.outerHTML.slice(0, 80));
}"""
