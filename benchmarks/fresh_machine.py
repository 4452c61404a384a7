"""README on a machine that has only Python: install, first start, first cell, second cell.

`python benchmarks/fresh_machine.py [TORCH…]`. TORCH are pip's arguments for PyTorch, if not those
of README. The environment, HOME and the notebooks' folder are new. A new notebook gets README's
first cell, then the one that reads its result, in a real JupyterLab and Chromium. Seconds are those
of a user who types in no time; the memory (PSS) is that of the server with all that it started. The
pictures are in `out/fresh-machine`. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe
from tests.browser.jupyter import PATIENCE_MS, ROOT, chromium, ended, new_page
from tests.image.services.processes import ending_with_tests
from tests.test_snippets import README, snippets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

PICTURES = ROOT / "out" / "fresh-machine"
ENDS_WITHIN_MS = 300_000


@dataclass
class FreshMachine:
    """An environment with nothing in it, a HOME with nothing in it, and what each step takes."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)
    disk_mb: dict[str, int] = field(default_factory=dict)
    memory_mb: dict[str, int] = field(default_factory=dict)

    @property
    def environment(self) -> Path:
        return self.folder / "environment"

    @property
    def variables(self) -> dict[str, str]:
        """Nothing of the user's but how pip finds packages."""
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "LANG"))
        }
        path = f"{self.environment / 'bin'}{os.pathsep}{os.defpath}"
        return {**kept, "PATH": path, "HOME": str(self.folder / "home")}

    def install(self, torch: list[str]) -> None:
        """Do what README says, package by package."""
        (self.folder / "home").mkdir()
        self._step("environment", sys.executable, "-m", "venv", str(self.environment))
        pip = (str(self.environment / "bin" / "python"), "-m", "pip", "install", "--quiet")
        self._step("torch", *pip, *torch)
        self._step("jupyterlab", *pip, "jupyterlab")
        self._step("distrain-nb", *pip, str(ROOT))

    def _step(self, name: str, *command: str) -> None:
        began, before = time.monotonic(), used_mb(self.environment)
        subprocess.run(command, check=True, env=self.variables, cwd=self.folder)
        self.seconds[name] = round(time.monotonic() - began, 1)
        self.disk_mb[name] = used_mb(self.environment) - before
        print(f"{name}: {self.seconds[name]} s, {self.disk_mb[name]} MB", flush=True)

    @contextmanager
    def lab(self) -> Iterator[str]:
        """JupyterLab's address, up to the end of the block."""
        (self.folder / "notebooks").mkdir()
        command = [str(self.environment / "bin" / "jupyter"), "lab", "--no-browser"]
        process = subprocess.Popen(
            ending_with_tests([*command, "--allow-root", "--ip=127.0.0.1", "--port=0"]),
            env=self.variables, cwd=self.folder / "notebooks",
            stdout=(self.folder / "server.log").open("w"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield self._address(process)
        finally:
            ended(process)

    def _address(self, process: subprocess.Popen[bytes]) -> str:
        while process.poll() is None:
            found = re.search(r"http://127\S+", (self.folder / "server.log").read_text())
            if found:
                return found[0]
            time.sleep(0.05)
        raise RuntimeError((self.folder / "server.log").read_text())

    def measure_memory(self, name: str) -> None:
        self.memory_mb[name] = sum(map(self._pss, psutil.process_iter())) // 1_000_000

    def _pss(self, process: psutil.Process) -> int:
        with suppress(psutil.Error):
            if process.environ().get("HOME") == self.variables["HOME"]:
                return int(process.memory_full_info().pss)
        return 0


def used_mb(folder: Path) -> int:
    """Return what a folder takes on the disk."""
    files = (path.lstat() for path in folder.rglob("*"))
    return sum(file.st_blocks * 512 for file in files) // 1_000_000


def run_cell(page: Page, number: int, text: str, **awaited: Locator) -> dict[str, float]:
    """Paste a cell and run it; return after how many seconds each of these was there."""
    page.locator(".jp-CodeCell .cm-content").nth(number).click()
    page.keyboard.insert_text(text.rstrip())
    began, seconds = time.monotonic(), {}
    page.keyboard.press("Shift+Enter")
    for name, place in awaited.items():
        expect(place).to_be_visible(timeout=ENDS_WITHIN_MS)
        seconds[name] = round(time.monotonic() - began, 2)
    return seconds


def use(machine: FreshMachine, page: Page, address: str, began: float) -> None:
    """Do in the page what a newcomer does."""
    page.goto(address)
    card = page.locator(".jp-LauncherCard[data-category='Notebook']").first
    expect(card).to_be_visible()
    machine.seconds["start"] = round(time.monotonic() - began, 1)
    machine.measure_memory("start")
    page.screenshot(path=PICTURES / "1-start.png")
    card.click()
    expect(page.locator(".jp-CodeCell .cm-content")).to_be_visible()
    expect(page.locator("#jp-main-statusbar", has_text="Idle")).to_be_visible()
    first, second, *_ = snippets(README)
    run = page.locator("section.distrain")
    awaited = {
        "line": run.locator(".dn-log .dn-line").first,
        "chart": page.locator(".distrain-charts iframe.dn-plot").first,
        "end": run.locator(".dn-badge", has_text="succeeded"),
    }
    for name, place in run_cell(page, 0, first, **awaited).items():
        machine.seconds[f"first cell, {name}"] = place
    machine.measure_memory("first cell")
    page.screenshot(path=PICTURES / "2-first-cell.png")
    result = page.locator(".jp-OutputArea-output", has_text="OrderedDict").last
    machine.seconds |= run_cell(page, 1, second, **{"second cell": result})
    page.screenshot(path=PICTURES / "3-second-cell.png")
    again = run.nth(1).locator(".dn-badge", has_text="succeeded")
    machine.seconds |= run_cell(page, 2, first, **{"first cell again": again})
    machine.measure_memory("first cell again")
    page.screenshot(path=PICTURES / "4-again.png")


def main(*torch: str) -> None:
    print(describe("playwright"))
    PICTURES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE_MS)
    with (
        tempfile.TemporaryDirectory(prefix="fresh-machine-") as name,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
        new_page(browser) as page,
    ):
        machine = FreshMachine(Path(name))
        (said,) = re.findall(r"^pip install (torch .+?)  +#", README.read_text(), re.M)
        machine.install(list(torch) or said.split())
        began = time.monotonic()
        with machine.lab() as address:
            use(machine, page, address, began)
    found = {
        "seconds": machine.seconds,
        "disk_mb": machine.disk_mb,
        "memory_mb": machine.memory_mb,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
