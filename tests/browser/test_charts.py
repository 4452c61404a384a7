"""The charts below a cell: tools that answer while the kernel is busy, and when it is done.

Tests look at one run, whose cell waits for it. After one that lets it end, another is started.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import FloatRect, Frame, Locator, Page, expect
from playwright.sync_api import TimeoutError as NotYet

from distrain_nb.run.charts.figure import COLOURS
from tests.browser.jupyter import Lab, OpenNotebook
from tests.browser.waits import holds

LOAD = "%load_ext distrain_nb"
QUICK_STEPS = 3_000  # reported as fast as possible; ten a second after them
TRAIN = """%%distrain -n 2 --name curves
import math, os, time
import numpy as np
from distrain_nb import log_metrics
from tensorboardX import SummaryWriter
if os.environ["RANK"] == "0":
    with SummaryWriter(os.environ["AIP_TENSORBOARD_LOG_DIR"]) as writer:
        for step in range(5):
            writer.add_histogram("weights", np.linspace(-1, 1, 100) + step, step)
            writer.add_image("digits", np.zeros((1, 4, 6), np.uint8), step)
            writer.add_text("note", f"words of step {{step}}", step)
        writer.add_pr_curve("curve", np.array([0, 1]), np.array([0.1, 0.9]), 1)
        writer.add_hparams({{"rate": 0.125, "optimizer": "adam"}}, {{}}, name="trial")
step = 0
while not os.path.exists({stop!r}):
    loss = math.exp(-step / 900) + 0.05 * math.sin(step * 7)
    log_metrics({{"train/loss": loss, "accuracy": 1 - loss / 2}}, step=step, every_rank=True)
    step += 1
    if step > {quick}:
        time.sleep(0.1)
"""
LEGEND_PX = 56  # of a picture with two pixels for each of the page, above its first chart
GESTURES = 5
GESTURE_S = 10.0  # long enough for a busy machine: what comes late isn't undone by a second one
FRAME = ".distrain-charts iframe.dn-plot"
IS_LINE = "({ uid }) => !/ (low|high)$/.test(uid)"  # and no edge of its band
DATA = f"plot.data.filter({IS_LINE})"
FULL_DATA = f"plot._fullData.filter({IS_LINE})"
LAYOUT = "plot.layout"
# Of each band its colour, and where it is higher than nothing.
BANDS = """() => plot.data.flatMap((high, place) => (high.fill ? [{
    colour: high.fillcolor, x: [...high.x],
    inside: [...high.y].map((y, at) => y > plot.data[place - 1].y[at]),
}] : []))"""
POINTS_OF = f"{DATA}.map(({{ x, y }}) => ({{ x: [...x], y: [...y] }}))"


class Charts:
    """An open notebook, the frame in which plotly draws, and the file that ends the run."""

    def __init__(self, opened: OpenNotebook, stop: Path) -> None:
        self.opened = opened
        self.page: Page = opened.page
        self.stop = stop

    @property
    def figure(self) -> Locator:
        return self.page.frame_locator(FRAME).first.locator("#plot.js-plotly-plot")

    @property
    def frame(self) -> Frame:
        element = self.page.locator(FRAME).first.element_handle()
        frame = element and element.content_frame()
        assert frame
        return frame

    def wait(self, condition: str, arg: Any = None) -> None:
        """Until it is true in the frame. Frames out of sight draw no frames, so by time."""
        holds(self.frame, condition, arg)

    def wait_after(self, gesture: Callable[[], object], condition: str) -> None:
        """Until it is true, with the gesture made again as a hand does: plotly loses what comes
        while it draws, and a page that is being filled moves below the mouse."""
        for _ in range(GESTURES - 1):
            gesture()
            with suppress(NotYet):
                holds(self.frame, condition, timeout_s=GESTURE_S)
                return
        gesture()
        self.wait(condition)

    def curves(self) -> list[dict[str, list[float]]]:
        found: list[dict[str, list[float]]] = self.frame.evaluate(POINTS_OF)
        return found

    def choose(self, axis: str, value: str) -> None:
        self.page.get_by_role("combobox", name=axis).first.select_option(value)

    def area(self) -> FloatRect:
        """Where the first subplot takes the mouse."""
        self.figure.scroll_into_view_if_needed()
        area = self.figure.locator(".nsewdrag").first.bounding_box()
        assert area
        return area


@pytest.fixture(scope="module")
def running(
    lab: Lab, shared_page: Page, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Charts]]:
    """Gives the run that tests look at: another one when a test has ended the last."""
    started: list[Charts] = []
    with ExitStack() as runs:

        def charts() -> Charts:
            if not started or started[-1].stop.exists():
                started.append(training(shared_page, lab, tmp_path_factory.mktemp("charts")))
                runs.callback(started[-1].stop.touch)
            return started[-1]

        yield charts


@pytest.fixture
def charts(running: Callable[[], Charts]) -> Charts:
    return running()


def training(page: Page, lab: Lab, folder: Path) -> Charts:
    """The charts of a run that goes on, when it has reported as much as tests count on."""
    stop = folder / "stop"
    opened = OpenNotebook(
        page, lab, lab.write(folder.name, LOAD, TRAIN.format(stop=str(stop), quick=QUICK_STEPS))
    )
    opened.run_cells(2)
    shown = Charts(opened, stop)
    expect(shown.figure.locator(".scatterlayer .trace").first).to_be_attached(timeout=150_000)
    shown.wait(f"{DATA}[0].x.length === 1000 && {DATA}[0].x.at(-1) > {QUICK_STEPS}")
    return shown


def losses(count: int) -> list[float]:
    return [math.exp(-step / 900) + 0.05 * math.sin(step * 7) for step in range(count)]


def averages(values: list[float], weight: float) -> list[float]:
    """Exponential moving averages, each divided by what its weights add up to."""
    found, average = [], 0.0
    for count, value in enumerate(values, 1):
        average = weight * average + (1 - weight) * value
        found.append(average / (1 - weight**count))
    return found


def test_smoothing_by_keyboard_is_over_all_points(charts: Charts) -> None:
    slider = charts.page.get_by_role("slider", name="Smoothing").first
    slider.press("End")
    for _ in range(9):
        slider.press("ArrowLeft")
    charts.wait(
        f"""(expected) => {DATA}.length === 8 && {DATA}[1].x.length === 500
            && {DATA}[1].x.every((x, at) => Math.abs({DATA}[1].y[at] - expected[x]) < 1e-5)""",
        averages(losses(20_000), 0.9),
    )
    slider.press("Home")
    charts.wait(f"{DATA}.length === 4")


def test_axes(charts: Charts) -> None:
    charts.choose("Y axis", "log")
    charts.wait(f"{LAYOUT}.yaxis2.type === 'log'")
    charts.choose("X axis", "relative")
    charts.wait(f"{DATA}.some(({{ x }}) => x[0] === 0 && x.at(-1) < 1000 && x.at(-1) % 1)")
    charts.choose("X axis", "wall")
    charts.wait(f"{LAYOUT}.xaxis.type === 'date'")
    charts.choose("X axis", "step")
    charts.choose("Y axis", "linear")
    charts.wait(f"{LAYOUT}.xaxis.type === 'linear' && {LAYOUT}.yaxis2.type === 'linear'")


def test_hover_tells_of_all_lines_and_the_legend_hides_them(charts: Charts) -> None:
    mouse = charts.page.mouse

    def point() -> None:
        area = charts.area()
        mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2, steps=5)

    charts.wait_after(
        point,
        """[...document.querySelectorAll('.hoverlayer .legend .traces')]
            .filter((line) => line.textContent.includes('rank-')).length === 2""",
    )
    beside = charts.figure.locator("xpath=following-sibling::*[@id='beside']")
    expect(beside.locator("i")).to_have_count(1)
    expect(beside.locator("span")).to_contain_text("rank-1: 0.")
    last = charts.page.locator(".dn-legend").first.get_by_role("button").last
    last.click()
    charts.wait(f"{FULL_DATA}.filter((trace) => trace.visible === false).length === 2")
    expect(last).to_have_attribute("aria-pressed", "false")
    length = charts.frame.evaluate(f"{DATA}[0].x.at(-1)")
    charts.wait(f"(length) => {DATA}[0].x.at(-1) > length", length)  # and more has come
    shown = charts.frame.evaluate("plot._fullData.map(({ name, visible }) => [name, visible])")
    assert len(shown) == 3 * 4, "each line has a band"
    hidden = last.inner_text()
    assert hidden == "rank-1", "ranks are in the order of their numbers"
    assert all(visible is (name != hidden) for name, visible in shown)
    last.click()
    charts.wait("plot._fullData.every((trace) => trace.visible === true)")


def test_zoom_fetches_every_point(charts: Charts) -> None:
    mouse = charts.page.mouse

    def drag() -> None:
        area = charts.area()
        y = area["y"] + area["height"] / 2
        mouse.move(area["x"] + area["width"] * 0.4, y)
        mouse.down()
        mouse.move(area["x"] + area["width"] * 0.5, y + 2, steps=5)
        mouse.up()

    def double_click() -> None:
        area = charts.area()
        mouse.dblclick(area["x"] + 40, area["y"] + area["height"] / 2)

    charts.wait_after(drag, f"{LAYOUT}.xaxis.autorange === false")
    low, high = charts.frame.evaluate(f"{LAYOUT}.xaxis.range")
    charts.wait(
        f"([low, high]) => {DATA}[0].x.filter((x) => x > low && x < high).length > 200",
        [low, high],
    )
    within = [x for x in charts.curves()[0]["x"] if low < x < high]
    assert within == list(range(round(within[0]), round(within[-1]) + 1)), "every step is there"
    expect(charts.page.get_by_role("button", name="Reset zoom").first).to_be_enabled()
    charts.wait_after(double_click, f"{LAYOUT}.xaxis.autorange === true")
    charts.wait(f"{DATA}[0].x.length <= 1000")


def test_what_a_line_leaves_out_is_in_its_band_until_a_zoom_shows_it(charts: Charts) -> None:
    def bands() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = charts.frame.evaluate(BANDS)
        return found

    charts.wait(f"{DATA}.length === 4 && {DATA}[0].x.length === 1000")
    expected = [f"{colour}33" for colour in COLOURS[:2]]
    assert sorted(band["colour"] for band in bands()) == sorted(2 * expected)
    whole = bands()[0]
    assert sum(whole["inside"]) > 0.9 * len(whole["inside"])
    charts.wait("plot.querySelectorAll('.scatterlayer .fills path').length >= 4")
    charts.frame.evaluate("Plotly.relayout(plot, {'xaxis.range': [1000.5, 1200.5]})")
    charts.wait(f"{DATA}[0].x.filter((x) => x > 1000 && x < 1200).length > 198")
    zoomed = bands()[0]
    within = [inside for x, inside in zip(zoomed["x"], zoomed["inside"], strict=True)
              if 1010 < x < 1190]  # fmt: skip
    assert len(within) > 170 and not any(within), "all points are drawn"
    assert any(zoomed["inside"]), "elsewhere they are not"
    charts.page.get_by_role("button", name="Reset zoom").first.click()
    charts.wait(f"{LAYOUT}.xaxis.autorange === true && {DATA}[0].x.length <= 1000")


def test_points_and_pictures_are_saved(charts: Charts, tmp_path: Path) -> None:
    page = charts.page
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").first.click()
    download.value.save_as(tmp_path / "all.csv")
    rows = list(csv.DictReader((tmp_path / "all.csv").open()))
    chosen = ("rank-1", "accuracy")
    steps = [int(row["step"]) for row in rows if (row["run"], row["tag"]) == chosen]
    assert len(steps) > QUICK_STEPS
    assert steps == list(range(len(steps)))
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").first.click()
    download.value.save_as(tmp_path / "charts.png")
    picture = np.asarray(Image.open(tmp_path / "charts.png").convert("RGB"), dtype=int)
    legend = picture[:LEGEND_PX].reshape(-1, 3)
    for colour in COLOURS[:2]:
        ink = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        assert (np.abs(legend - ink).max(axis=1) < 8).sum() > 20, f"{colour} is in the legend"


def test_histograms_images_texts_and_hyperparameters_are_shown(charts: Charts) -> None:
    page = charts.page
    boxes = page.locator("details.dn-folded")
    images, texts = boxes.filter(has_text="Images (1)"), boxes.filter(has_text="Texts (1)")
    images.locator("summary").click()
    picture = images.get_by_role("img", name="digits")
    expect(picture).to_be_visible(timeout=60_000)
    assert picture.evaluate("(e) => [e.naturalWidth, e.naturalHeight]") == [6, 4]
    texts.locator("summary").click()
    expect(texts.locator("pre")).to_have_text("words of step 4", timeout=60_000)
    texts.get_by_role("slider").press("ArrowLeft")
    expect(texts.locator("pre")).to_have_text("words of step 3", timeout=60_000)
    histograms = boxes.filter(has_text="Histograms (1)")
    histograms.locator("summary").click()
    hills = histograms.frame_locator("iframe").locator(".scatterlayer .trace")
    expect(hills).to_have_count(5, timeout=60_000)
    boxes.filter(has_text="Hyperparameters").locator("summary").click()
    expect(page.locator(".dn-hparams tr")).to_have_text(["trial", "optimizeradam", "rate0.125"])
    expect(page.get_by_text("not shown: curve (PR curve, 1 value)")).to_be_visible()
    for box in (images, texts, histograms):
        box.locator("summary").click()


def test_narrow_and_dark(charts: Charts) -> None:
    before = charts.frame.evaluate(f"{LAYOUT}.font.color")
    charts.page.set_viewport_size({"width": 700, "height": 900})
    charts.wait(f"{LAYOUT}.xaxis.domain[0] === {LAYOUT}.xaxis2.domain[0]")
    charts.opened.theme("JupyterLab Dark")
    charts.wait(f"(before) => {LAYOUT}.font.color !== before", before)
    charts.opened.theme("JupyterLab Light")
    charts.page.set_viewport_size({"width": 1280, "height": 900})
    charts.wait(f"{LAYOUT}.xaxis.domain[1] < {LAYOUT}.xaxis2.domain[0]")


def test_the_tools_stay_when_the_run_has_ended(charts: Charts) -> None:
    page = charts.page
    charts.frame.evaluate("window.stays = true")
    charts.stop.touch()
    charts.opened.wait_for_cell(1, 60)
    expect(page.locator("section.distrain .dn-badge")).to_contain_text("succeeded")
    expect(page.locator(".dn-figure[data-drawn]").first).to_be_visible(timeout=60_000)
    expect(page.locator(".dn-area svg:visible")).to_have_count(0)
    assert charts.frame.evaluate("window.stays")  # moved, and not loaded anew
    page.get_by_role("slider", name="Smoothing").first.press("End")
    charts.wait(f"{DATA}.length === 8 && {DATA}[1].x.length === 500")
    folded = page.locator("details.dn-folded").filter(has_text="Resources by rank")
    expect(folded.locator("iframe")).to_have_count(0)
    page.get_by_text("Resources by rank").click()
    resources = folded.frame_locator("iframe").locator("#plot.js-plotly-plot")
    expect(resources.locator(".scatterlayer .trace").first).to_be_attached(timeout=60_000)
    expect(folded.locator(".dn-title").first).to_contain_text("cpu %")

    saved = json.dumps(charts.opened.save())
    assert len(saved) < 300_000
    assert "widget-view" not in saved
    charts.opened.reload()  # the kernel still answers, and the browser has kept the smoothing
    expect(charts.figure.locator(".scatterlayer .trace")).to_have_count(
        8 + 2 * 4, timeout=60_000
    )  # bands
    charts.opened.shut_down_kernel()
    charts.opened.reload()
    expect(page.locator("path.dn-line").first).to_be_visible()
    expect(page.get_by_text("1 histogram, 1 image, 1 text: %distrain attach")).to_be_visible()
    expect(page.locator(FRAME)).to_have_count(0)
