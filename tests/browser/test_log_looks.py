"""How lines of a log look: colours in both themes, long lines, matches, and a log without lines."""

from __future__ import annotations

import os
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from distrain_nb.run import Run, Store
from distrain_nb.worker.files.status import Owner, State, Status
from tests.browser.jupyter import Lab, OpenNotebook
from tests.browser.test_monitor import LOAD, view_of
from tests.browser.waits import becomes
from tests.server.stored import stored_run

OPEN = Callable[..., OpenNotebook]
COLOURS = "".join(
    "".join(f"\x1b[38;5;{16 * row + column}m{column:4d}" for column in range(16)) + "\x1b[0m\n"
    for row in range(16)
)
PAIRS = "".join(f"\x1b[9{column};4{column}mpair\x1b[7mturned\x1b[0m" for column in range(8)) + "\n"
MILLION = 1_000_000
COUNT = 16 * 16 + 8 * 2
PLACES = """() => [...document.querySelectorAll(".dn-log .dn-line span:not(.dn-tag)")]
    .filter((it) => it.className && it.textContent.trim())"""
# Of each piece of text against what is behind it, as WCAG computes it.
CONTRASTS = f"""() => {{
    const brush = document.createElement("canvas").getContext("2d", {{ willReadFrequently: true }});
    const luminance = (colour) => {{
        brush.fillStyle = colour;
        brush.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...brush.getImageData(0, 0, 1, 1).data].map((part) => {{
            const value = part / 255;
            return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        }});
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }};
    const paper = getComputedStyle(document.querySelector("section.distrain")).backgroundColor;
    return ({PLACES})().map((it) => {{
        const {{ color, backgroundColor }} = getComputedStyle(it);
        const ground = backgroundColor === "rgba(0, 0, 0, 0)" ? paper : backgroundColor;
        const [low, high] = [luminance(color), luminance(ground)].sort((a, b) => a - b);
        return [(high + 0.05) / (low + 0.05), it.className, color, ground];
    }});
}}"""
IS_CUT = "(log) => log.scrollWidth > log.clientWidth"
IN_SIGHT = """(log) => [...log.querySelectorAll(".dn-line")].filter((row) => {
    const [at, box] = [row.getBoundingClientRect(), log.getBoundingClientRect()];
    return at.top >= box.top - 1 && at.bottom <= box.bottom + 1;
}).map((row) => row.dataset.row)"""


def opened(shown: OPEN, lab: Lab, text: str, state: State = State.SUCCEEDED) -> tuple[Page, Run]:
    """A page with the view of a run that has printed this."""
    run = stored_run(Store(lab.home), text, state)
    if not state.final:
        Status(state, "importing torch", supervisor=Owner.of(os.getpid())).write(run.folder)
    notebook = shown(f"looks-{run.id}", LOAD, f"%distrain show {run.id}")
    notebook.run_cells(2)
    return notebook.page, run


def log_of(page: Page) -> Locator:
    return view_of(page).locator(".dn-log")


def test_every_colour_can_be_read_in_both_themes(shown: OPEN, lab: Lab) -> None:
    page, _ = opened(shown, lab, COLOURS + PAIRS)
    expect(log_of(page).locator(".dn-line")).to_have_count(17)
    for theme in ("Light", "Dark"):
        page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            f"JupyterLab {theme}",
        )
        light = str(theme == "Light").lower()
        page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
        page.wait_for_function(f"() => ({PLACES})().length === {COUNT}")  # drawn anew
        found = page.evaluate(CONTRASTS)
        assert len(found) == COUNT
        assert len({colour for _, _, colour, _ in found}) > 100
        assert not [each for each in found if each[0] < (3 if "ansi-box" in each[1] else 4.5)]


def test_long_lines_are_wrapped_and_matches_marked_across_colours(shown: OPEN, lab: Lab) -> None:
    long = "".join(f"{n} {'word ' * 80}\n" for n in range(300))
    page, _ = opened(shown, lab, f"a \x1b[31mneed\x1b[1mle\x1b[0m here\n{long}last\n")
    log = log_of(page)
    expect(log).to_contain_text("last")
    becomes(log, IS_CUT, True)
    wrap = view_of(page).get_by_role("button", name="Wrap")
    wrap.click()
    expect(wrap).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(f"(log) => ({IN_SIGHT})(log).includes('301')", arg=log.element_handle())
    becomes(log, IS_CUT, False)
    assert log.locator("[data-row='300']").evaluate("(row) => row.offsetHeight") > 2 * 18
    log.press("Home")
    page.wait_for_function(f"(log) => ({IN_SIGHT})(log)[0] === '0'", arg=log.element_handle())
    log.press("End")
    page.wait_for_function(f"(log) => ({IN_SIGHT})(log).includes('301')", arg=log.element_handle())

    view_of(page).get_by_role("searchbox").fill("needle")
    expect(view_of(page).locator(".dn-hits")).to_have_text("1 of 1")
    expect(log.locator("mark")).to_have_text(["need", "le"])
    wrap.click()
    expect(log.locator("mark")).to_have_text(["need", "le"])
    becomes(log, IS_CUT, True)


def test_a_million_lines_are_counted_and_reached_from_end_to_end(shown: OPEN, lab: Lab) -> None:
    page, _ = opened(shown, lab, "".join(f"line {n}\n" for n in range(MILLION)))
    log = log_of(page)
    expect(view_of(page).locator(".dn-count")).to_have_text("1,000,000 lines")
    expect(log.locator(f"[data-row='{MILLION - 1}']")).to_contain_text("line 999999")
    log.press("Home")
    expect(log.locator("[data-row='0']")).to_contain_text("line 0")
    log.press("End")
    expect(log.locator(f"[data-row='{MILLION - 1}']")).to_be_visible()


def test_a_log_says_what_it_waits_for_and_counts_what_moves(shown: OPEN, lab: Lab) -> None:
    page, run = opened(shown, lab, "", State.STARTING)
    view = view_of(page)
    expect(view.get_by_text("no output yet: importing torch")).to_be_visible()
    expect(view.get_by_role("searchbox")).to_be_hidden()
    with (run.folder / "log.tsv").open("a") as log:
        log.write("1.0\t0\tE\t 10% of a bar\n")
    expect(view.locator(".dn-count")).to_have_text("1 line")
    expect(view.get_by_role("searchbox")).to_be_visible()
    with (run.folder / "log.tsv").open("a") as log:
        log.write("2.0\t0\te\t100% of a bar\n3.0\t1\tO\tanother\n")
    expect(view.locator(".dn-count")).to_have_text("2 lines")
    Status(State.SUCCEEDED).write(run.folder)
    expect(view.locator(".dn-badge")).to_contain_text("succeeded")
