"""What a page needs a moment for: it draws in its next frame, late on a busy machine."""

from __future__ import annotations

import contextlib
from typing import Any

from playwright.sync_api import Error, Locator, Page, expect


def becomes(place: Page | Locator, function: str, value: Any) -> None:
    """Wait until a JavaScript function gives the value; of a locator, it gets the element."""
    whole = isinstance(place, Page)
    page, element = (place, None) if whole else (place.page, place.element_handle())
    same = f"([it, value]) => JSON.stringify(({function})(it)) === JSON.stringify(value)"
    with contextlib.suppress(Error):
        page.wait_for_function(same, arg=[element, value], polling=100)
    found = place.evaluate(function)
    assert found == value, found


def draw(figure: Locator) -> None:
    """Bring a figure into sight, which makes its live chart; a theme's change replaces it."""
    expect(figure).to_be_visible()
    for _ in range(3):
        with contextlib.suppress(Error):
            figure.scroll_into_view_if_needed()
            break
    expect(figure).to_have_attribute("data-drawn", "")
