"""Gaps between frames of large pages in Chromium: `python -m benchmarks.page_frames [ROUNDS]`.

The widgets stand in a plain page whose server is this process, so that nothing of Jupyter counts:

- `runs`: a list of 500 runs, 4 of them running, sorted by each column in turn;
- `study`: a study of 200 trials, 4 in parallel, up to its end, with a trial's end every 0.2 s;
- `curves`: a study of 200 trials with learning curves: the mouse moves over them, the page scrolls;
- `brush`: the same study: a brush is drawn, moved and cleared, the mouse moves over all charts;
- `metrics`: a running run with 300 metrics, which come anew every second, from its first chart on;
- `empty`: nothing moves. What this machine itself takes, in the same minutes.

The last line is one JSON object: of each page the median of `p95_ms` and `max_ms` of all rounds.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe
from distrain_nb.study.answers import answer
from distrain_nb.study.files import TrialState
from distrain_nb.study.importances import Importances
from tests.browser.jupyter import chromium
from tests.browser.measures import BEGIN, watch
from tests.browser.test_many_rows import RUNNING, RUNS, listed, served
from tests.browser.widget_page import widget_page
from tests.study.stored import stored_curves, stored_study, stored_trial
from tests.ui.runs import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

TRIALS, PARALLEL, TRIAL_EVERY_S = 200, 4, 0.2
CURVES, CURVE_STEPS = "[data-tag='learning curves of val/loss']", 400
STUDY = {"study": 1, "run": 0, "home": "", "state": {}, "waiting": False, "kernel": ""}
METRICS, WATCHED_S = 300, 12
COLUMNS = ("name", "state", "where", "best metric", "duration", "age", "run")


def gaps(page: Page, during: Callable[[Page], object]) -> dict[str, float]:
    """Return what the page's frames took while something goes on."""
    page.evaluate(BEGIN)
    during(page)
    seen = page.evaluate("() => window.__seen")
    for frame in seen["worst"][:3]:
        print(f"    {frame['ms']:.0f} ms: {'; '.join(frame['blame'])}")
    ordered = sorted(seen["gaps"])
    return {"p95_ms": ordered[int(len(ordered) * 0.95)], "max_ms": ordered[-1]}


def empty(browser: Browser, _: Path) -> dict[str, float]:
    with widget_page(browser, "runs", {"home": ""}, lambda *_: {"runs": []}, prepare=watch) as page:
        return gaps(page, lambda page: page.wait_for_timeout(4000))


def runs(browser: Browser, _: Path) -> dict[str, float]:
    now = time.time()
    rows = [listed(number, now) for number in range(RUNS, 0, -1)]
    rows[:4] = [{**row, **RUNNING} for row in rows[:4]]

    def sort(page: Page) -> None:
        for column in COLUMNS:
            for _ in range(2):
                page.get_by_title(f"Sort by {column}", exact=True).click()
                page.wait_for_timeout(300)

    with widget_page(
        browser, "runs", {"home": ""}, lambda *_: {"runs": rows}, prepare=watch
    ) as page:
        expect(page.locator("tr[data-state]")).to_have_count(50)
        return gaps(page, sort)


def study(browser: Browser, folder: Path) -> dict[str, float]:
    swept, importances = stored_study(folder, 4, TRIALS), Importances()
    ended = threading.Event()

    def go_on() -> None:
        begin = time.time()
        for number in range(5, TRIALS + 1):
            for running in range(number + 1, min(TRIALS, number + PARALLEL) + 1):
                trial = stored_trial(running, begin)
                state = {"state": TrialState.RUNNING, "goals": {}, "end": begin}
                replace(trial, **state).write(swept.folder)
            stored_trial(number, begin).write(swept.folder)
            time.sleep(TRIAL_EVERY_S)
        ended.set()

    def wait(page: Page) -> None:
        thread = threading.Thread(target=go_on)
        thread.start()
        while not ended.is_set():
            page.wait_for_timeout(200)
        thread.join()

    def told(_: str, query: dict[str, str]) -> object:
        return answer(swept, importances, query)

    with widget_page(browser, "study", STUDY, told, prepare=watch) as page:
        expect(page.locator("tr[data-state]").first).to_be_visible()
        return gaps(page, wait)


def metrics(browser: Browser, folder: Path) -> dict[str, float]:
    run = RunFolder(folder / "runs" / "1", 1)
    values = {f"group{n % 8}/metric{n}": float(n) for n in range(METRICS)}
    run.report(500, **values)
    ended = threading.Event()

    def train() -> None:
        step = 500
        while not ended.is_set():
            run.report(1, begin=step, **values)
            step += 1
            time.sleep(1)

    thread = threading.Thread(target=train)

    def look(page: Page) -> None:
        page.get_by_role("button", name="Open").click()
        thread.start()
        page.wait_for_timeout(WATCHED_S * 1000)
        ended.set()
        thread.join()

    with widget_page(browser, "runs", {"home": ""}, served(run), prepare=watch) as page:
        expect(page.get_by_role("button", name="Open")).to_be_visible()
        return gaps(page, look)


def curves(browser: Browser, folder: Path) -> dict[str, float]:
    swept, importances = stored_study(folder, TRIALS, TRIALS), Importances()
    stored_curves(swept, CURVE_STEPS)
    importances.of(swept.spec, swept.all_trials(), wait=True)

    def look(page: Page) -> None:
        chart = page.locator(f"{CURVES} .dn-area")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        for down, across in product((0.6, 0.8, 0.9), range(2, 90)):
            page.mouse.move(box["x"] + box["width"] * across / 100, box["y"] + box["height"] * down)
        expect(page.locator(f"{CURVES} .dn-above")).to_have_count(1)
        for down in (*[40] * 30, *[-40] * 30):
            page.mouse.wheel(0, down)
            page.wait_for_timeout(16)

    with widget_page(
        browser, "study", STUDY, lambda _, query: answer(swept, importances, query), prepare=watch
    ) as page:
        expect(page.locator(f"{CURVES} .dn-trial").nth(TRIALS - TRIALS // 25 - 1)).to_be_attached()
        page.wait_for_timeout(1000)  # what opening it takes is another matter
        return gaps(page, look)


def brush(browser: Browser, folder: Path) -> dict[str, float]:
    swept, importances = stored_study(folder, TRIALS, TRIALS), Importances()
    stored_curves(swept, CURVE_STEPS)
    importances.of(swept.spec, swept.all_trials(), wait=True)

    def look(page: Page) -> None:
        axis = page.locator(".dn-brush").first
        axis.scroll_into_view_if_needed()
        box = axis.bounding_box()
        assert box
        middle = box["x"] + box["width"] / 2
        page.mouse.move(middle, box["y"] + box["height"] * 0.02)
        page.mouse.down()
        for down in (*range(2, 98), *range(98, 40, -1)):
            page.mouse.move(middle, box["y"] + box["height"] * down / 100)
        page.mouse.up()
        expect(page.get_by_role("button", name="Clear brushes")).to_be_enabled()
        for chart in page.locator(".dn-figure .dn-chart .dn-area").all():
            chart.scroll_into_view_if_needed()
            seen = chart.bounding_box()
            assert seen
            for share in range(2, 98, 2):
                page.mouse.move(
                    seen["x"] + seen["width"] * share / 100,
                    seen["y"] + seen["height"] * share / 100,
                )
        page.get_by_role("button", name="Clear brushes").click()

    with widget_page(
        browser, "study", STUDY, lambda _, query: answer(swept, importances, query), prepare=watch
    ) as page:
        expect(page.locator(f"{CURVES} .dn-trial").nth(TRIALS - TRIALS // 25 - 1)).to_be_attached()
        page.wait_for_timeout(1000)
        return gaps(page, look)


PAGES = {
    "empty": empty,
    "runs": runs,
    "study": study,
    "curves": curves,
    "brush": brush,
    "metrics": metrics,
}


def main(rounds: int = 1, *names: str) -> None:
    print(describe("playwright"))
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in names or PAGES}
    with sync_playwright() as playwright, chromium(playwright) as browser:
        for _ in range(rounds):
            for name, measured in figures.items():
                with tempfile.TemporaryDirectory() as folder:
                    measured.append(PAGES[name](browser, Path(folder)))
                print(name, measured[-1], flush=True)
    table = {
        name: {
            key: round(statistics.median(one[key] for one in measured), 1) for key in measured[0]
        }
        for name, measured in figures.items()
    }
    print(json.dumps(table))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
