"""What runs and studies have cost, on the page: with what the price leaves out, at any width."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from distrain_nb.backends.cost import RunCost
from distrain_nb.run import Store
from distrain_nb.worker.files.status import State
from tests.browser.jupyter import Lab, OpenNotebook
from tests.browser.test_accessibility import violations
from tests.browser.test_runs import CUT_OFF
from tests.browser.test_study import LOAD, VIEW, new_study
from tests.server.stored import stored_run

LEFT_OUT = "storage and traffic are not counted"
COST = RunCost(hourly=36.0, currency="EUR", note=LEFT_OUT)


def test_the_cost_of_a_study_and_of_runs(lab: Lab, page: Page, axe: str) -> None:
    run = stored_run(Store(lab.home), "a line\n")
    COST.write(run.folder)
    status = run.status.enter(State.RUNNING).enter(State.SUCCEEDED)
    status.write(run.folder)  # after its cost, as it ends: a list reads it once
    study = new_study(lab, 12, 12, State.SUCCEEDED)
    COST.write(study.folder)
    shown = (f"%distrain tune {study.id}", "%distrain")
    opened = OpenNotebook(page, lab, lab.write("cost", LOAD, *shown))
    opened.run_cells(3)
    head = page.locator(f"{VIEW} .dn-head")
    expect(head).to_contain_text(f"12 of 12 trials · 1.50 EUR ({LEFT_OUT})")
    cost = page.locator(f"tr[aria-label^='run {run.id},'] td.dn-cost")
    expect(cost).to_contain_text("EUR")
    expect(cost).to_contain_text(LEFT_OUT)
    for width in (1280, 800):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(200)
        assert page.evaluate(CUT_OFF) == []
    assert violations(page, axe, "section.distrain") == []
