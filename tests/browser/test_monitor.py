"""The monitor in JupyterLab, with real runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.conftest import OpenNotebook

TRAIN = """%%distrain -n 2 --name digits
import math, os, sys, time
from distrain_nb import log_metrics
rank = int(os.environ["RANK"])
print(f"\\x1b[32mready\\x1b[0m on rank {rank}")
for step in range(STEPS):
    loss = math.exp(-step / 30) + 0.05 * math.sin(step + rank)
    log_metrics({"train/loss": loss, "test/accuracy": 1 - loss / 2}, step=step, every_rank=EVERY)
    if step % 10 == 0:
        print(f"epoch {step // 10}: loss {loss:.4f}")
    sys.stderr.write(f"\\r{step + 1:3d}/{STEPS} " + "█" * (step * 30 // STEPS))
    sys.stderr.flush()
    time.sleep(PAUSE)
sys.stderr.write("\\n")
"""


def test_a_run_is_shown_while_it_runs_and_after(notebook: Callable[..., OpenNotebook]) -> None:
    train = "STEPS, PAUSE, EVERY = 100, 0.04, True\n"
    lab = notebook("live", "%load_ext distrain_nb", train, TRAIN)
    for cell in range(3):
        lab.run_cell(cell)
    page = lab.page
    view = page.locator(".distrain").first
    expect(view.locator(".dn-badge")).to_contain_text("running", timeout=20_000)
    expect(view.locator(".dn-line").first).to_be_visible()
    expect(page.locator(".js-plotly-plot .trace")).to_have_count(4, timeout=20_000)
    page.screenshot(path="/tmp/shots/live.png")
    expect(view.locator(".dn-badge")).to_contain_text("succeeded", timeout=30_000)
    page.wait_for_timeout(1500)
    page.screenshot(path="/tmp/shots/end.png")
