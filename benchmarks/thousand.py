"""Our own parts at 64, 256 and 1,024 ranks: `python -m benchmarks.thousand [LINES [RANKS…]]`.

One process writes what so many replicas would, LINES lines a second each (100), in the folder of a
job (`thousand_ranks.py`). All else is real: the process that carries the run, Jupyter's server, a
kernel, JupyterLab in Chromium with the run's view. After a while the page is loaded anew, one rank
is chosen, and then one fails, and the others of its absence. SHOTS=FOLDER keeps pictures.

The last line is one JSON object, by the number of ranks:

- `written`, `carried`: lines a second that were written, and that arrived in the run's log;
- `behind_s`, `behind_p95_s`: the age of the newest line in the page, in the middle and at most;
- `cores`, `mb`: CPU seconds a second and memory (PSS) of each process;
- `frame_p95_ms`, `frame_max_ms`: gaps between frames, and `wire_mb_s` what came into the page;
- `page_s`, `reload_s` until Jupyter has its notebook, and until the first line is shown;
- `choose_s` until only the lines of a rank are shown that was typed;
- `named_s` from the first failure until the page names it; `ended_s` until the run has ended.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe
from benchmarks.thousand_ranks import FAIL, WRITTEN, failing, submit
from distrain_nb.run import Run, Store
from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.status import State, Status
from tests.browser.jupyter import Lab, OpenNotebook, chromium, new_page, serve
from tests.browser.measures import Measured, kernel_process, watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RANKS, LINES = (64, 256, 1024), 100
SETTLES_S, WATCHED_S, PATIENCE_S = 8.0, 20.0, 300.0
VIEW = ".jp-OutputArea-output section.distrain"
NOTE_AGES = """(view) => {
    const ages = window.__ages = [];
    let last = "";
    setInterval(() => {
        const text = [...document.querySelectorAll(`${view} .dn-line`)].at(-1)?.textContent ?? "";
        if (text === last) return;
        last = text;
        const at = text.match(/at (\\d+\\.\\d+)$/);
        if (at) ages.push(Date.now() / 1000 - Number(at[1]));
    }, 50);
}"""


class Spending:
    """CPU seconds and memory of processes, by what they are, from now on."""

    def __init__(self, processes: dict[str, list[psutil.Process]]) -> None:
        self._processes = processes
        self._began = time.monotonic()
        self._before = self._cpu()

    def _cpu(self) -> dict[str, float]:
        return {name: sum(map(_cpu, group)) for name, group in self._processes.items()}

    def end(self) -> dict[str, dict[str, float]]:
        passed = time.monotonic() - self._began
        cores = {
            name: round((now - self._before[name]) / passed, 3) for name, now in self._cpu().items()
        }
        memory = {name: round(sum(map(_mb, group))) for name, group in self._processes.items()}
        return {"cores": cores, "mb": memory}


def _cpu(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:2]))
    except psutil.NoSuchProcess:
        return 0.0


def _mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def processes(opened: OpenNotebook, carrier: int, ranks: int) -> dict[str, list[psutil.Process]]:
    """Return the processes that take part, by what they are."""
    own = psutil.Process().children(recursive=True)
    commands = {process: " ".join(process.cmdline()) for process in own}
    return {
        "ranks": [psutil.Process(ranks)],
        "carrier": [psutil.Process(carrier)],
        "server": [process for process, words in commands.items() if "-m jupyterlab" in words],
        "kernel": [psutil.Process(kernel_process(opened))],
        "browser": [process for process in own if "chrom" in process.name()],
    }


def lines_in(run: Run) -> int:
    """Return how many lines the run's log has."""
    with (run.folder / LOG_FILE).open("rb") as log:
        return sum(piece.count(b"\n") for piece in iter(lambda: log.read(1 << 20), b""))


def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def shot_of_times(page: Page, name: str) -> None:
    """Take a picture of the map of slow ranks, unfolded."""
    if os.environ.get("SHOTS"):
        page.get_by_text("Where the time goes").last.click()
        page.locator(".dn-figure[data-drawn]").last.wait_for()
        page.locator(".dn-heat").last.evaluate("(it) => it.scrollIntoView({ block: 'center' })")
        page.locator(".dn-map").last.hover()
        shot(page, name)


def choose(page: Page, rank: int) -> float:
    """Have only the lines of one rank shown, and return how long that took."""
    began = time.monotonic()
    field = page.locator(VIEW).get_by_label("show the lines of")
    if field.evaluate("it => it.tagName") == "SELECT":
        field.select_option(label=f"rank {rank}")
    else:
        field.fill(f"{rank}")
        field.press("Enter")
    expect(page.locator(f"{VIEW} .dn-count")).to_contain_text(" of ")
    expect(page.locator(f"{VIEW} .dn-line").first).to_contain_text(f"rank {rank}")
    return time.monotonic() - began


def reload(opened: OpenNotebook) -> dict[str, float]:
    opened.save()
    began = time.monotonic()
    opened.reload(busy=True)
    loaded = time.monotonic() - began
    expect(opened.page.locator(f"{VIEW} .dn-line").first).to_be_visible()
    return {"page_s": round(loaded, 2), "reload_s": round(time.monotonic() - began, 2)}


def fail(page: Page, job: Path, run: Run, ranks: int) -> dict[str, float]:
    """Have a rank fail, and return the seconds until the page says which one was the first."""
    (job / FAIL).touch()
    began = time.monotonic()
    named = page.locator(VIEW).filter(has_text=f"rank {failing(ranks)} failed")
    expect(named).to_have_count(1, timeout=PATIENCE_S * 1000)
    seconds = time.monotonic() - began
    while not run.status.state.final and time.monotonic() < began + PATIENCE_S:
        time.sleep(0.1)
    ended = time.monotonic() - began
    first = run.status.error.partition("\n")[0]
    assert f"rank {failing(ranks)} " in first, run.status.error[:3000]
    return {"named_s": round(seconds, 2), "ended_s": round(ended, 2)}


def measure(browser: Browser, lab: Lab, ranks: int, lines: int, folder: Path) -> dict[str, Any]:
    """Return the figures of one job."""
    job = folder / f"job-{ranks}"
    run = submit(Store(lab.home), job, ranks)
    with ExitStack() as stack:
        carrier = _start(stack, lab, "carry", run.folder)
        writer = _start(stack, lab, "write", job, ranks, lines)
        _wait_for_lines(run)
        page = stack.enter_context(new_page(browser))
        watch(page)
        attach = f"%distrain attach {run.id}"
        opened = OpenNotebook(page, lab, lab.write(f"of-{ranks}", "%load_ext distrain_nb", attach))
        opened.run_cell(0)
        opened.wait_for_cell(0, PATIENCE_S)
        opened.run_cell(1)
        expect(page.locator(f"{VIEW} .dn-line").nth(5)).to_be_visible(timeout=PATIENCE_S * 1000)
        page.wait_for_timeout(SETTLES_S * 1000)
        page.evaluate(NOTE_AGES, VIEW)
        spending = Spending(processes(opened, carrier.pid, writer.pid))
        measured, began = Measured(opened), time.monotonic()
        before = int((job / WRITTEN).read_text()), lines_in(run)
        page.wait_for_timeout(WATCHED_S * 1000)
        spent, figures = measured.end(), spending.end()
        seconds = time.monotonic() - began
        after = int((job / WRITTEN).read_text()), lines_in(run)
        ages = sorted(page.evaluate("() => window.__ages")) or [float("nan")]
        written, carried = ((b - a) / seconds for a, b in zip(before, after, strict=True))
        print(*(f"    {line}" for line in spent.worst[:3]), sep="\n", flush=True)
        shot(page, f"{ranks}-running")
        figures |= {
            "written": round(written),
            "carried": round(carried),
            "lag_lines": after[0] - after[1],
            "behind_s": round(statistics.median(ages), 2),
            "behind_p95_s": round(ages[int(0.95 * len(ages))], 2),
            "frame_p95_ms": round(spent.frame_p95_ms, 1),
            "frame_max_ms": round(spent.frame_max_ms, 1),
            "wire_mb_s": round(spent.wire_mb / seconds, 3),
            **reload(opened),
            "choose_s": round(choose(page, failing(ranks)), 2),
        }
        shot(page, f"{ranks}-chosen")
        shot_of_times(page, f"{ranks}-times")
        print(json.dumps(figures), flush=True)
        figures |= fail(page, job, run, ranks)
        shot(page, f"{ranks}-failed")
        opened.shut_down_kernel()
    return figures


def _start(stack: ExitStack, lab: Lab, *words: object) -> subprocess.Popen[bytes]:
    """Start a process of `thousand_ranks.py`, which ends with this one."""
    command = [sys.executable, "-m", "benchmarks.thousand_ranks", *map(str, words)]
    environment = {**os.environ, "DISTRAIN_HOME": str(lab.home)}
    process = subprocess.Popen(command, env=environment, cwd=Path(__file__).parents[1])
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _wait_for_lines(run: Run) -> None:
    end = time.monotonic() + PATIENCE_S
    while Status.read(run.folder).state is not State.RUNNING or not lines_in(run):
        assert time.monotonic() < end, "no line has come"
        time.sleep(0.2)


def main(lines: int = LINES, *numbers: int) -> None:
    print(describe("jupyterlab", "playwright"))
    expect.set_options(timeout=PATIENCE_S * 1000)
    figures = {}
    for ranks in numbers or RANKS:
        with (
            tempfile.TemporaryDirectory(prefix="thousand-") as folder,
            sync_playwright() as playwright,
            chromium(playwright) as browser,
            serve(Path(folder), extension=True) as lab,
        ):
            figures[ranks] = measure(browser, lab, ranks, lines, Path(folder))
        print(ranks, json.dumps(figures[ranks]), flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
