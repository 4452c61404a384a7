"""What a newcomer types, clicks and waits for, in a real JupyterLab and Chromium.

`python benchmarks/newcomer.py`. Two paths, each from an empty notebook whose kernel is there: to
two ranks on this machine with their chart, and by the form to a rehearsed job of Vertex AI, where
the settings name a base image. The hand types as fast as the page takes it, so that seconds are
those of waiting: for the form, the first line of the log, the chart, and the end. The last line is
one JSON object.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe
from tests.browser.jupyter import PATIENCE_MS, OpenNotebook, chromium, new_page
from tests.browser.rehearsing import serve_rehearsing

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TRAINING = (
    "import math",
    "from distrain_nb import log_metrics",
    "for step in range(100):",
    "log_metrics(step=step, loss=math.exp(-step / 30))",
)
ENDS_WITHIN_MS = 300_000


@dataclass
class Hand:
    """A hand at keyboard and mouse, and what it has done."""

    page: Page
    typed: int = 0  # characters
    keys: int = 0  # that are none: Enter, Tab, Shift+Enter
    clicks: int = 0
    seconds: dict[str, float] = field(default_factory=dict)  # from the start of the cell

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.typed += len(text)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.keys += 1

    def click(self, place: Locator) -> None:
        place.click()
        self.clicks += 1

    def type_lines(self, *lines: str) -> None:
        """JupyterLab indents them."""
        for line in lines[:-1]:
            self.type(line)
            self.press("Enter")
        self.type(lines[-1])

    def run(self, **awaited: Locator) -> None:
        """Start the cell, and wait for each of these in turn."""
        began = time.monotonic()
        self.press("Shift+Enter")
        for name, place in awaited.items():
            expect(place).to_be_visible(timeout=ENDS_WITHIN_MS)
            self.seconds[name] = round(time.monotonic() - began, 2)

    def done(self) -> dict[str, object]:
        return {
            "typed": self.typed,
            "keys": self.keys,
            "clicks": self.clicks,
            "seconds": self.seconds,
        }


def seen(page: Page) -> dict[str, Locator]:
    """What a run shows, in the order in which it comes."""
    run = page.locator("section.distrain")
    return {
        "line": run.locator(".dn-log .dn-line").first,
        "chart": page.locator(".distrain-charts iframe.dn-plot").first,
        "end": run.locator(".dn-badge", has_text="succeeded"),
    }


def to_a_chart(page: Page) -> Hand:
    """Two ranks here."""
    hand = Hand(page)
    hand.click(page.locator(".jp-Cell .cm-content").first)
    hand.type_lines("%%distrain -n 2", *TRAINING, 'print("step", step)')
    hand.run(**seen(page))
    return hand


def to_a_rehearsal(page: Page) -> Hand:
    """The form, a new cell with its line, and the job."""
    hand = Hand(page)
    hand.click(page.locator(".jp-Cell .cm-content").first)
    hand.type("%distrain form")
    form = page.locator(".dn-form")
    hand.run(form=form)
    hand.click(form.get_by_label("Vertex AI"))
    hand.click(form.get_by_role("button", name="+ Primary"))
    expect(form.locator('input[data-path="primary.machine"]')).to_be_focused()
    hand.type("n1-standard-4")
    hand.press("Tab")
    expect(form.locator(".dn-verdict")).to_have_text("Everything fits")
    rehearse = form.get_by_role("button", name="Rehearse in a new cell")
    if rehearse.count():
        hand.click(rehearse)
        page.wait_for_function("() => document.activeElement.matches('.jp-CodeCell .cm-content')")
    else:
        hand.click(form.get_by_role("button", name="Put in a new cell"))
        editors = page.locator(".jp-InputArea-editor", has_text="%%distrain --on")
        hand.click(editors.last.locator(".cm-line").first)
        hand.press("End")
        hand.type(" --rehearse")
        hand.press("Enter")
    hand.type_lines(*TRAINING, 'print("step", step)')
    hand.run(**seen(page))
    return hand


def main() -> None:
    print(describe("jupyterlab", "ipykernel"))
    expect.set_options(timeout=PATIENCE_MS)
    found = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
        serve_rehearsing(Path(folder)) as lab,
    ):
        for name, path in (("chart", to_a_chart), ("rehearsal", to_a_rehearsal)):
            with new_page(browser) as page:
                OpenNotebook(page, lab, lab.write(name, ""))
                found[name] = path(page).done()
                print(name, found[name], flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
