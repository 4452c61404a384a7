"""How charts look: the same live and saved, in both themes, wide and narrow."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import FloatRect, Locator, Page, expect

from distrain_nb.run import Run, Store
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics import event_format, writer
from tests.browser.jupyter import PATIENCE_MS, Lab, OpenNotebook
from tests.browser.waits import draw
from tests.server.stored import stored_run

OPEN = Callable[..., OpenNotebook]
LOAD = "%load_ext distrain_nb"
READABLE = 4.5  # contrast of text and ground, WCAG's AA
NEAR_PX = 2.0
VALUES: dict[str, Callable[[int], float]] = {
    "loss": lambda step: math.exp(-step / 100),
    "rate": lambda step: 3e-5 * (1 - step / 400),
    "tokens": lambda step: 2_345_678.0 * step,
    "negative": lambda step: -250.0 - step,
    "constant": lambda step: 0.5,
    "narrow": lambda step: 1_000 + step / 1e4,
}
TICKS = """(frame) => [...document.querySelectorAll("g[class$=tick] > text")].map((tick) => {
    const { x, y, width, height } = tick.getBoundingClientRect();
    return [tick.textContent, x + width / 2, y + height / 2];
})"""
DRAWN_TICKS = """(figure) => [...figure.querySelectorAll(".dn-tick")].map((tick) => {
    const origin = figure.getBoundingClientRect();
    const { x, y, width, height } = tick.getBoundingClientRect();
    return [tick.textContent, x - origin.x + width / 2, y - origin.y + height / 2];
})"""
# Every height that charts have had since, from the first that had a height.
HEIGHTS = """() => {
    const seen = window.__heights = new Set();
    const look = () => {
        const shown = [...document.querySelectorAll(".distrain-charts")]
            .map((charts) => charts.getBoundingClientRect().height).filter((height) => height);
        for (const height of shown) seen.add(Math.round(height));
        requestAnimationFrame(look);
    };
    look();
}"""
# How many figures are seen, in each frame that is drawn from now on.
COUNT_FIGURES = """() => {
    const seen = window.__figures = new Set();
    const look = () => {
        const figures = [...document.querySelectorAll(".distrain-charts > .dn-figure")];
        seen.add(figures.filter((it) => it.checkVisibility() && it.parentNode.clientHeight).length);
        requestAnimationFrame(look);
    };
    look();
}"""
FIGURES_SEEN = "() => [...window.__figures]"
IN_THE_PAGES_INK = """(ink) => {
    const inks = [...document.querySelectorAll("g[class$=tick] > text")]
        .map((tick) => getComputedStyle(tick).fill);
    const solid = (colour) => colour.match(/\\d+/g).slice(0, 3).join();
    return inks.length > 0 && inks.every((each) => solid(each) === solid(ink));
}"""


def report(run: Run, steps: int, *tags: str, series: str = "") -> None:
    events = writer._EventFile(run.folder / "tensorboard" / series)
    for step in range(steps):
        events.write(
            event_format.event(time.time(), step, {tag: VALUES[tag](step) for tag in tags})
        )


def figure_of(page: Page) -> Locator:
    """Where the last charts are drawn, when they are."""
    figure = page.locator(".distrain-charts:not([data-coming]) > .dn-figure[data-drawn]").last
    expect(figure).to_be_visible()
    return figure


def box(place: Locator) -> FloatRect:
    found = place.bounding_box()
    assert found
    return found


def picture(place: Locator) -> np.ndarray[Any, Any]:
    """Its pixels in grey, from 0 to 1."""
    shot = Image.open(io.BytesIO(place.screenshot())).convert("L")
    return np.asarray(shot, dtype=np.float64) / 255


def coarse(pixels: np.ndarray[Any, Any], side: int = 12) -> np.ndarray[Any, Any]:
    """Means of squares: where ink is, whatever the font."""
    height, width = (length // side * side for length in pixels.shape)
    squares = pixels[:height, :width].reshape(height // side, side, width // side, side)
    return squares.mean(axis=(1, 3))


def contrast(pixels: np.ndarray[Any, Any]) -> float:
    """Between the ground, which is most of it, and what differs from that most."""
    light = np.where(pixels <= 0.03928, pixels / 12.92, ((pixels + 0.055) / 1.055) ** 2.4)
    ground = float(np.median(light))
    return max(
        (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05)
        for ink in (float(light.min()), float(light.max()))
    )


def settle(figure: Locator) -> None:
    """Until the ticks stand in the frame in the ink that the page has now."""
    frame = figure.locator("iframe").element_handle().content_frame()
    assert frame
    end = time.monotonic() + PATIENCE_MS / 1000
    while not frame.evaluate(IN_THE_PAGES_INK, ink_of(figure)):  # a theme's styles may come late
        assert time.monotonic() < end, f"ticks are not {ink_of(figure)}"
        figure.page.wait_for_timeout(100)


def ink_of(place: Locator) -> str:
    """The colour of its text, of an SVG's too."""
    of = "place.ownerSVGElement ? 'fill' : 'color'"
    return str(place.evaluate(f"(place) => getComputedStyle(place)[{of}]"))


def assert_readable(figure: Locator) -> None:
    settle(figure)
    ticks = figure.frame_locator("iframe").locator(".xtick text, .ytick text")
    for text in (ticks.first, ticks.last, figure.locator(".dn-title b").first):
        end = time.monotonic() + PATIENCE_MS / 1000
        while contrast(picture(text)) <= READABLE:  # a frame may still be fading in
            assert time.monotonic() < end, (text.text_content(), ink_of(text), ink_of(figure))
            text.page.wait_for_timeout(100)


@pytest.mark.parametrize("width", [1280, 420])
def test_what_is_saved_looks_as_it_did_live(shown: OPEN, lab: Lab, width: int) -> None:
    run = stored_run(Store(lab.home))
    report(run, 300, *VALUES, series="rank-0")
    report(run, 300, "loss", series="rank-1")
    opened = shown(f"looks{width}", LOAD, f"%distrain attach {run.id}")
    page = opened.page
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(HEIGHTS)
    opened.run_cells(2)
    opened.wait_for_cell(1, 60)
    figure = figure_of(page)
    settle(figure)
    assert len(page.evaluate("() => [...window.__heights]")) == 1, "nothing jumps"
    frame = figure.locator("iframe").element_handle().content_frame()
    assert frame
    live_ticks = sorted(frame.evaluate(TICKS))
    live_box, live = box(page.locator(".distrain-charts")), picture(figure)
    log = box(page.locator("section.distrain"))
    assert (live_box["x"], live_box["width"]) == (log["x"], log["width"])

    opened.save()
    opened.shut_down_kernel()
    opened.reload()
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    figure = page.locator(".dn-figure")
    expect(figure.locator("path.dn-line").first).to_be_visible()
    expect(page.locator("iframe.dn-plot")).to_have_count(0)
    saved_box, saved = box(page.locator(".distrain-charts")), picture(figure)
    for name in ("width", "height"):
        assert saved_box[name] == live_box[name], name  # type: ignore[literal-required]
    ticks = sorted(figure.evaluate(DRAWN_TICKS))
    assert [text for text, _, _ in ticks] == [text for text, _, _ in live_ticks]
    assert np.allclose([t[1:] for t in ticks], [t[1:] for t in live_ticks], atol=NEAR_PX)
    assert live.shape == saved.shape
    assert live.std() > 0.02, "something is drawn"
    assert np.abs(coarse(live) - coarse(saved)).mean() < 0.01


def test_live_charts_take_a_drawings_place_before_it_is_seen(shown: OPEN, lab: Lab) -> None:
    run = stored_run(Store(lab.home))
    report(run, 300, "loss")
    live = f"""
        from distrain_nb.run import Store
        from distrain_nb.ui.charts import RunCharts
        from distrain_nb.run.charts.lines import Metrics
        charts = RunCharts(Metrics(Store().get("{run.id}").folder))
        charts.refresh()
        display(*charts.widgets)"""
    opened = shown("places", live, "display(charts.still(), raw=True)")
    page = opened.page
    opened.run_cell(0)
    assert figure_of(page).is_visible()
    page.evaluate(COUNT_FIGURES)
    opened.run_cell(1)
    moved = page.locator(".jp-Cell").nth(1).locator(".dn-figure[data-drawn] > iframe")
    expect(moved).to_be_visible()
    assert page.evaluate(FIGURES_SEEN) == [1]


def test_charts_follow_the_theme_at_once(shown: OPEN, lab: Lab) -> None:
    store = Store(lab.home)
    one, other = stored_run(store), stored_run(store)
    report(one, 300, "loss", "rate")
    report(other, 300, "loss", "rate")
    compare = f"%distrain compare {one.id} {other.id}"
    opened = shown("themes", LOAD, f"%distrain attach {one.id}", compare)
    page = opened.page
    opened.run_cells(3)
    opened.wait_for_cell(2, 60)
    figures = page.locator(".distrain-charts:not([data-coming]) > .dn-figure")
    expect(figures).to_have_count(2)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        opened.theme(theme)
        for figure in figures.all():
            draw(figure)
            assert_readable(figure)
    assert contrast(picture(figures.last.locator(".dn-series").first)) > READABLE


def test_many_metrics_are_filtered_and_folded(shown: OPEN, lab: Lab) -> None:
    run = stored_run(Store(lab.home))
    events = writer._EventFile(run.folder / "tensorboard")
    tags = [f"{group}/{name}" for group in ("train", "val") for name in ("a", "b", "c", "d")]
    for step in range(30):
        events.write(event_format.event(time.time(), step, {**dict.fromkeys(tags, 1.0 + step)}))
        events.write(event_format.event(time.time(), step, {"val/nothing": math.nan}))
    opened = shown("groups", LOAD, f"%distrain attach {run.id}")
    opened.run_cells(2)
    opened.wait_for_cell(1, 60)
    figure = figure_of(opened.page)
    traces = figure.frame_locator("iframe").locator(".scatterlayer .trace")
    expect(traces).to_have_count(9)
    expect(figure.get_by_text("all 30 values are NaN")).to_be_visible()
    figure.locator("summary", has_text="train").click()
    expect(traces).to_have_count(5)
    opened.page.get_by_role("searchbox", name="Filter metrics").fill("val/a")
    expect(traces).to_have_count(1)


def test_the_filter_finds_what_is_not_drawn(shown: OPEN, lab: Lab) -> None:
    run = stored_run(Store(lab.home))
    for series in ("", "rank-1"):
        events = writer._EventFile(run.folder / "tensorboard" / series)
        for step in range(30):
            values = {f"metric{number:03}": float(step + number) for number in range(100)}
            events.write(event_format.event(time.time(), step, values))
    opened = shown("found", LOAD, f"%distrain attach {run.id}")
    opened.run_cells(2)
    opened.wait_for_cell(1, 60)
    figure = figure_of(opened.page)
    plot = figure.frame_locator("iframe")
    expect(plot.locator(".scatterlayer .trace")).to_have_count(2 * 60)
    search = opened.page.get_by_role("searchbox", name="Filter metrics")
    search.fill("metric09")
    expect(figure.locator(".dn-chart:visible b")).to_have_text([f"metric09{n}" for n in range(10)])
    expect(plot.locator(".scatterlayer .trace")).to_have_count(2 * 10)
    expect(figure.locator(".dn-chart:visible .dn-newest").last).to_have_text("128")
    search.fill("")
    expect(figure.locator(".dn-found")).to_have_count(0)
    expect(plot.locator(".scatterlayer .trace")).to_have_count(2 * 60)


def test_step_times_are_areas_above_each_other(shown: OPEN, lab: Lab) -> None:
    run = stored_run(Store(lab.home))
    report(run, 30, "loss")
    for rank in (0, 1):
        folder = run.folder / EVENTS_FOLDER / STEP_TIMES_FOLDER / f"rank-{rank}"
        for window in range(30):
            kinds = {"data": 0.06, "compute": 0.04, "steps": 10.0}
            writer.append(folder, 10 * window, kinds)
    opened = shown("areas", LOAD, f"%distrain attach {run.id}")
    opened.run_cells(2)
    opened.wait_for_cell(1, 60)
    expect(figure_of(opened.page)).to_be_visible()
    opened.page.get_by_text("Where the time goes").click()
    folded = opened.page.locator("details.dn-folded").filter(has_text="Where the time goes")
    areas = folded.frame_locator("iframe").locator(".scatterlayer .trace .js-fill")
    expect(areas).to_have_count(4, timeout=60_000)
    expect(folded.locator(".dn-title b")).to_have_text(["ms a step, rank 0", "ms a step, rank 1"])
    expect(folded.get_by_text("a step takes 100 ms: 60 % waiting for data")).to_be_visible()
