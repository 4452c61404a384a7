"""Takes pictures of every state at two widths in both themes, in a real JupyterLab, of real runs.

`python -m scripts.pictures [NAME…]` puts them, or only those of some scenes, into `out/pictures`,
with `index.html`, which shows all of them. It fails where axe finds something in one of them.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect, sync_playwright

from scripts.pictures.camera import Stage, complaints, photograph
from scripts.pictures.scenes import ENDS_WITHIN_S, SCENES
from scripts.pictures.sheet import write_sheet
from tests.browser.conftest import axe_core
from tests.browser.jupyter import PATIENCE_MS, ROOT, OpenNotebook, chromium, new_page
from tests.browser.rehearsing import serve_rehearsing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from scripts.pictures.scenes import Scene, Shot
    from tests.browser.jupyter import Lab

FOLDER = ROOT / "out" / "pictures"


def main(names: list[str]) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE_MS)
    axe, found = axe_core(), 0
    wanted = [scene for scene in SCENES if not names or scene.name in names]
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        playwright = stack.enter_context(sync_playwright())
        browser = stack.enter_context(chromium(playwright))
        for scene in wanted:
            with serve_rehearsing(place / scene.name) as lab:
                found += play(browser, lab, scene, axe)
    print(write_sheet(FOLDER, [shot for scene in SCENES for shot in shots_of(scene)]))
    print(f"axe finds {found} problems")
    return int(found > 0)


def shots_of(scene: Scene) -> list[Shot]:
    return [
        *(shot for _, shots in scene.cells for shot in shots),
        *(shot for _, shot in scene.saved),
    ]


def play(browser: Browser, lab: Lab, scene: Scene, axe: str) -> int:
    """Run its cells, and take the pictures of each. Return how much axe finds in them."""
    found = 0
    with new_page(browser) as page:
        name = lab.write(scene.name, *(cell for cell, _ in scene.cells))
        opened = OpenNotebook(page, lab, name)
        for number, (cell, shots) in enumerate(scene.cells):
            if not is_completed(cell):
                opened.run_cell(number)
            for shot in shots:
                found += take(Stage(opened, number), shot, axe)
            if not is_completed(cell):
                opened.wait_for_cell(number, ENDS_WITHIN_S)
        if scene.saved:
            opened.save()
            lab.trust(name)
            opened.shut_down_kernel()
            opened.reload()
        for number, shot in scene.saved:
            found += take(Stage(opened, number), shot, axe)
    return found


def is_completed(cell: str) -> bool:
    """Whether it is there to be completed, and not to be run."""
    return cell.startswith("%%distrain") and "\n" not in cell and "--help" not in cell


def take(stage: Stage, shot: Shot, axe: str) -> int:
    shot.act(stage)
    found = 0
    for file in photograph(stage, FOLDER, shot.name, shot.act if shot.floats else None):
        problems = complaints(stage, axe)
        print(file.relative_to(ROOT), f"{file.stat().st_size // 1000} kB", *problems, flush=True)
        found += len(problems)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
