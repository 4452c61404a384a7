"""Takes the pictures of `docs/studio.md` and `docs/workbench.md`, in a real JupyterLab whose kernel
meets stand-ins of what those places tell.

`python -m scripts.pictures.places` writes `docs/studio.png` and `docs/workbench.png`.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect, sync_playwright

from scripts.pictures.scenes import ENDS_WITHIN_S
from tests.browser.jupyter import PATIENCE_MS, ROOT, OpenNotebook, chromium, new_page, serve
from tests.places.stand_ins import metadata_server, sagemaker
from tests.places.test_places import ANSWERS, ARN, SPACE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# What the pages have their readers run.
RANKS = """import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])"""
# Before the first cell, in the folder of the notebook.
STARTUP = """import os
from pathlib import Path
from distrain_nb.places.sagemaker import studio
from distrain_nb.places.vertex import workbench as google
os.environ.update({environ})
studio.FILE, google.PRODUCT_FILE = Path("resource-metadata.json"), Path("/nowhere")
"""


@dataclass(frozen=True)
class Place:
    """Where a notebook is: variables of its kernel, Studio's file, and the options of its cloud."""

    name: str
    options: str
    environ: dict[str, str]
    studio: dict[str, str] = field(default_factory=dict)


def main() -> None:
    expect.set_options(timeout=PATIENCE_MS)
    with ExitStack() as stack:
        workbench = stack.enter_context(metadata_server({"proxy-mode": "service_account"}))
        aws = stack.enter_context(sagemaker(ANSWERS))
        on_aws = {
            "AWS_ENDPOINT_URL_SAGEMAKER": f"http://{aws.address}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "IMAGE_VERSION": "4.4.1",
        }
        on_google = {"GCE_METADATA_HOST": workbench.address}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        playwright = stack.enter_context(sync_playwright())
        browser = stack.enter_context(chromium(playwright))
        space = {**SPACE, "ResourceArn": ARN}
        for place in (
            Place("studio", "--on sagemaker --workers ml.m5.xlarge", on_aws, space),
            Place("workbench", "--on vertex --primary n1-standard-4", on_google),
        ):
            photograph(browser, folder, place)


def photograph(browser: Browser, folder: Path, place: Place) -> None:
    """The first run and the dry run of that place, in one picture."""
    cells = (
        "%load_ext distrain_nb",
        f"%%distrain -n 2\n{RANKS}",
        f"%%distrain {place.options} --dry-run\n{RANKS}",
    )
    root = folder / place.name
    startup = root / "ipython" / "profile_default" / "startup" / "place.py"
    startup.parent.mkdir(parents=True)
    startup.write_text(STARTUP.format(environ=place.environ), encoding="utf-8")
    with serve(root) as lab, new_page(browser) as page:
        told = json.dumps(place.studio or [])
        (lab.folder / "resource-metadata.json").write_text(told, encoding="utf-8")
        opened = OpenNotebook(page, lab, lab.write("first-run", *cells))
        opened.command("application:toggle-left-area")
        for number in range(len(cells)):
            opened.run_cell(number)
            opened.wait_for_cell(number, ENDS_WITHIN_S)
        expect(page.locator("section.distrain .dn-badge")).to_contain_text("succeeded")
        page.locator(".jp-Notebook .jp-Cell").first.scroll_into_view_if_needed()
        page.screenshot(path=ROOT / "docs" / f"{place.name}.png")


if __name__ == "__main__":
    main()
