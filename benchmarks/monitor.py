"""A flood of lines, and of points, in a real JupyterLab and Chromium: ours and other ways.

`python benchmarks/monitor.py`. 100,000 lines in 5 seconds, from 4 ranks of a run or by `print` and
`ipywidgets.Output` from a thread of the kernel; then 4 lines that grow to 100,000 points each in
10 seconds, by a run, a plain `FigureWidget` and livelossplot. Who isn't done after 45 seconds is
stopped and named in `unfinished`. The last line is one JSON object; in each of these, the ways:

- `frame_p95_ms`, `frame_max_ms`: gaps between frames of the page, from the start of the cell to a
  second after its end;
- `kernel_cpu_s`: CPU seconds of the kernel itself (not of the ranks);
- `wire_mb`: what came into the page by WebSocket and from our server extension;
- `notebook_kb`: the saved notebook;
- `seconds` until the kernel was idle, and `lines_shown` of 100,000;
- `points`: the same of the points.

`--lines 10000000`: instead, 4 ranks of a run print so many lines without a pause. After that,
`reload_s` from the page's reload until the first line is shown, `page_s` of it until Jupyter has
its notebook; `first_hit_s` and `search_s` until a word of one line is found, and counted;
`search_frame_p95_ms`, `search_frame_max_ms` meanwhile, and `heap_mb` of the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from playwright.sync_api import TimeoutError as TookTooLong
from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.floods import LINE_WAYS, LOAD, POINT_WAYS, RANKS, Way, as_fast_as_possible
from benchmarks.machine import describe
from tests.browser.jupyter import Lab, OpenNotebook, chromium, new_page, serve
from tests.browser.measures import Measured, Spent, watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Browser

STOPPED_AFTER_S = 45.0
SETTLES_S = 1.0
LINES_SHOWN = """() => {
    const ours = document.querySelector(".distrain")?.innerText.match(/([\\d,.]+) lines/);
    if (ours) return Number(ours[1].replace(/\\D/g, ""));
    const printed = [...document.querySelectorAll(".jp-OutputArea-output pre")];
    return printed.reduce((all, it) => all + it.textContent.split("\\n").length - 1, 0);
}"""


@dataclass(frozen=True)
class Result:
    """How one way did: what was spent, and whether it was done in time."""

    way: str
    spent: Spent
    seconds: float
    finished: bool
    lines_shown: int
    notebook_kb: float

    def figures(self) -> dict[str, float]:
        return {
            "frame_p95_ms": round(self.spent.frame_p95_ms, 1),
            "frame_max_ms": round(self.spent.frame_max_ms, 1),
            "kernel_cpu_s": round(self.spent.kernel_cpu_s, 2),
            "wire_mb": round(self.spent.wire_mb, 2),
            "notebook_kb": round(self.notebook_kb, 1),
            "seconds": round(self.seconds, 1),
            "lines_shown": self.lines_shown,
        }


def measure(browser: Browser, lab: Lab, way: Way, what: str) -> Result:
    """One way of showing one flood, in a page and a kernel of its own."""
    with new_page(browser) as page:
        watch(page)
        opened = OpenNotebook(page, lab, lab.write(f"{what}-{way.name}", *way.cells))
        last = len(way.cells) - 1
        for number in range(last):
            opened.run_cell(number)
            opened.wait_for_cell(number, STOPPED_AFTER_S)
        measured = Measured(opened)
        began = time.monotonic()
        opened.run_cell(last)
        finished = is_done(opened, last)
        seconds = time.monotonic() - began
        time.sleep(SETTLES_S)
        spent = measured.end()
        if not finished:
            psutil.Process(measured.kernel).kill()
        shown = page.evaluate(LINES_SHOWN)
        opened.save()
        size = opened.path.stat().st_size / 1e3
        opened.shut_down_kernel()
    result = Result(way.name, spent, seconds, finished, shown, size)
    print(f"{what}, {way.name}: {'' if finished else 'stopped after '}{seconds:.1f} s; {spent}")
    print(*(f"    {line}" for line in spent.worst[:3]), sep="\n", flush=True)
    return result


def is_done(opened: OpenNotebook, cell: int) -> bool:
    """Wait for the cell that has just been started; false if it takes too long."""
    try:
        opened.wait_for_cell(cell, STOPPED_AFTER_S)
    except TookTooLong:
        return False
    return True


def table(results: Sequence[Result]) -> dict[str, Any]:
    """Each figure of each way, by figure."""
    names = results[0].figures()
    return {name: {one.way: one.figures()[name] for one in results} for name in names}


def large_log(browser: Browser, lab: Lab, lines: int) -> dict[str, float]:
    """Return what a page costs over a run of so many lines: flood, reload, search."""
    with new_page(browser) as page:
        watch(page)
        opened = OpenNotebook(page, lab, lab.write("flood", LOAD, as_fast_as_possible(lines)))
        opened.run_cell(0)
        opened.wait_for_cell(0, STOPPED_AFTER_S)
        measured, began = Measured(opened), time.monotonic()
        opened.run_cell(1)
        opened.wait_for_cell(1, 3600)
        seconds, flood = time.monotonic() - began, measured.end()
        shown = f"{lines // RANKS * RANKS:,} lines"
        expect(page.locator(".distrain").first).to_contain_text(shown, timeout=600_000)
        opened.save()
        began = time.monotonic()
        opened.reload()
        loaded = time.monotonic() - began
        expect(page.locator(".dn-line").first).to_be_visible(timeout=600_000)
        reload = time.monotonic() - began
        expect(page.locator(".distrain").first).to_contain_text(shown, timeout=600_000)
        measured, began = Measured(opened), time.monotonic()
        hits = page.locator(".dn-hits")
        page.get_by_label("search the whole log").fill("Needle is")
        expect(hits).to_contain_text("1 of 1", timeout=600_000)
        first = time.monotonic() - began
        expect(hits).to_have_text("1 of 1", timeout=600_000)
        found, search = time.monotonic() - began, measured.end()
        heap = page.evaluate("() => performance.memory?.usedJSHeapSize ?? 0")
        opened.shut_down_kernel()
    return {
        "lines": lines,
        "seconds": round(seconds, 1),
        "frame_p95_ms": round(flood.frame_p95_ms, 1),
        "frame_max_ms": round(flood.frame_max_ms, 1),
        "page_s": round(loaded, 2),
        "reload_s": round(reload, 2),
        "first_hit_s": round(first, 2),
        "search_s": round(found, 2),
        "search_frame_p95_ms": round(search.frame_p95_ms, 1),
        "search_frame_max_ms": round(search.frame_max_ms, 1),
        "heap_mb": round(heap / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Floods in a real JupyterLab.")
    parser.add_argument("--lines", type=int, help="of a flood of ours alone, without a pause")
    flood = parser.parse_args().lines
    print(describe("jupyterlab", "ipykernel", "ipywidgets", "plotly", "livelossplot"))
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
        serve(Path(folder)) as lab,
    ):
        if flood:
            print(json.dumps(large_log(browser, lab, flood)))
            return
        lines = [measure(browser, lab, way, "lines") for way in LINE_WAYS]
        points = [measure(browser, lab, way, "points") for way in POINT_WAYS]
    unfinished = [f"points {one.way}" for one in points if not one.finished]
    unfinished = [f"lines {one.way}" for one in lines if not one.finished] + unfinished
    told = {**table(lines), "points": table(points), "unfinished": unfinished}
    del told["points"]["lines_shown"]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
