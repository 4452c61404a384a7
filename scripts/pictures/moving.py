"""Records README's first cell in a real JupyterLab, at the speed at which it happened.

`python -m scripts.pictures.moving` writes `docs/run.webp`. The run has ten times as many steps as
README's, so that there is something to watch. README's own ran once before: PyTorch is preloaded.
"""

from __future__ import annotations

import io
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from scripts.pictures.camera import Stage
from scripts.pictures.scenes import ENDS_WITHIN_S
from tests.browser.jupyter import PATIENCE_MS, ROOT, OpenNotebook, chromium, new_page, serve
from tests.test_snippets import README, snippets

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

PICTURE = ROOT / "docs" / "run.webp"
WIDTH, HEIGHT = 1080, 1250
SHORTEST_MS = 80  # of a frame
FIRST_S, LAST_S = 1.2, 3.0  # how long the first frame and the last one stay
QUALITY = 70
LONGER = {"range(200)": "range(2000)", "lr=0.01": "lr=0.001", "step % 20": "step % 400"}


@dataclass
class Film:
    """Frames with the times at which they were taken."""

    page: Page
    clip: FloatRect
    frames: list[tuple[float, bytes]] = field(default_factory=list)

    def shoot(self) -> None:
        """Take a frame, unless it is the same as the last."""
        taken = self.page.screenshot(clip=self.clip)
        if not self.frames or self.frames[-1][1] != taken:
            self.frames.append((time.monotonic(), taken))

    def shoot_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.shoot()
            self.page.wait_for_timeout(SHORTEST_MS)

    def save(self, file: Path) -> None:
        """Write the frames, each for as long as it was seen."""
        times = [moment for moment, _ in self.frames]
        ends = [*times[1:], times[-1] + LAST_S]
        shown = [int((end - begin) * 1000) for begin, end in zip(times, ends, strict=True)]
        first, *more = (Image.open(io.BytesIO(png)).convert("RGB") for _, png in self.frames)
        first.save(
            file, save_all=True, append_images=more, duration=shown, loop=0, quality=QUALITY,
            method=4,
        )  # fmt: skip


def record(opened: OpenNotebook) -> Film:
    """Run the first cell, delete it, and film the next."""
    page = opened.page
    opened.run_cell(0)
    opened.wait_for_cell(0, ENDS_WITHIN_S)
    opened.command("notebook:delete-cell")
    stage = Stage(opened, 0)
    expect(stage.cell).to_contain_text(LONGER["range(200)"])
    notebook = page.locator(".jp-NotebookPanel-notebook").bounding_box()
    cell = stage.cell.bounding_box()
    assert notebook and cell
    top = cell["y"] - 6
    film = Film(page, {**notebook, "y": top, "height": HEIGHT - top - 30})
    film.shoot()
    page.wait_for_timeout(FIRST_S * 1000)
    opened.run_cell(0)
    badge = stage.cell.locator(".dn-badge", has_text="succeeded")
    while not badge.count():
        film.shoot_for(SHORTEST_MS / 1000)
    film.shoot_for(LAST_S)
    return film


def main() -> None:
    expect.set_options(timeout=PATIENCE_MS)
    first = cell = snippets(README)[0].rstrip()
    for readme, longer in LONGER.items():
        assert readme in cell, readme
        cell = cell.replace(readme, longer)
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        chromium(playwright) as browser,
        serve(Path(folder)) as lab,
        new_page(browser) as page,
    ):
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        opened = OpenNotebook(page, lab, lab.write("first", first, cell, ""))
        opened.command("application:toggle-left-area")
        film = record(opened)
    film.save(PICTURE)
    print(f"{PICTURE.relative_to(ROOT)}: {len(film.frames)} frames,", end=" ")
    print(f"{PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
