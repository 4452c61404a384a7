"""What a run costs by its time on machines, and its end by `--max-cost`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.backends.cost import RunCost, seconds_on_machines
from distrain_nb.backends.cost_watch import CostWatch
from distrain_nb.backends.price import NoPrice
from distrain_nb.backends.prices import price_of
from distrain_nb.backends.remote import carrier
from distrain_nb.layout import Layout
from distrain_nb.ui.form import Form
from distrain_nb.worker.files.status import State, Status, Stretch

from .folder_service import FolderService

HOUR = 3600.0


def lived(*stretches: tuple[State, float], end: State | None = None, at: float = 0.0) -> Status:
    """A run that entered these states at these seconds."""
    times = {str(state): begin for state, begin in stretches}
    trail = tuple(Stretch(str(state), str(state), begin) for state, begin in stretches)
    state = end or stretches[-1][0]
    return Status(state, times={**times, str(state): at} if end else times, trail=trail)


RUNS = ((State.STARTING, 0.0), (State.RUNNING, 100.0))


def test_only_the_time_on_machines_is_paid() -> None:
    twice = (*RUNS, (State.STARTING, 150.0), (State.RUNNING, 500.0), (State.STOPPING, 600.0))
    assert seconds_on_machines(lived(*twice), 620.0) == 50 + 100 + 20
    assert seconds_on_machines(lived((State.STARTING, 0.0), (State.STOPPING, 9.0)), 99.0) == 0
    assert seconds_on_machines(lived(*RUNS), 120.0, ("starting",)) == 120
    assert seconds_on_machines(Status(State.RUNNING), 120.0) == 0


def test_a_run_says_what_it_has_cost() -> None:
    cost = RunCost(hourly=8.0, currency="USD")
    now, half = 100.0 + HOUR / 2, lived(*RUNS)
    assert cost.text(half, now) == "at least 4.00 USD"
    end = now + HOUR
    assert cost.text(half, now, end) == "4.00 USD so far, about 12.0 USD at the end"
    done = lived(*RUNS, end=State.SUCCEEDED, at=100.0 + HOUR)
    assert cost.text(done, end + HOUR) == "8.00 USD"
    spot = replace(cost, ceiling=True)
    assert spot.text(half, now) == "at most 4.00 USD so far"
    assert spot.text(done, end) == "at most 8.00 USD"
    assert replace(spot, billed=HOUR / 4).text(done, end) == "2.00 USD"
    assert RunCost(why="no login").text(half, now) == "price not known: no login"
    assert RunCost().text(half, now) == ""


def test_a_carrier_stops_a_run_where_it_has_cost_what_it_may(
    run: Path, service: FolderService
) -> None:
    (service.folder / "held").touch()
    RunCost(layout="--on folder", hourly=HOUR, currency="USD", limit=0.3).write(run)
    carrier.carry(run, {"service": "here"})
    status = Status.read(run)
    assert (service.folder / "cancelled").exists()
    assert status.state is State.FAILED
    assert status.error == "it was stopped by --max-cost: it has cost 0.30 USD"
    cost = RunCost.read(run)
    assert cost is not None
    assert cost.text(status, 0.0).endswith(" USD")


def test_what_the_service_bills_counts_at_the_end(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = FolderService.observe
    monkeypatch.setattr(
        FolderService, "observe", lambda own, job: replace(seen(own, job), billed=HOUR / 4)
    )
    RunCost(layout="--on folder", hourly=8.0, currency="USD", ceiling=True).write(run)
    carrier.carry(run, {"service": "here"})
    cost = RunCost.read(run)
    assert cost is not None
    assert cost.text(Status.read(run), 0.0) == "2.00 USD"


def test_a_carrier_has_the_price_that_the_cell_did_not_wait_for(book: Path, tmp_path: Path) -> None:
    RunCost(layout="--on slurm --workers 4", gpus=8).write(tmp_path)
    watch, price = CostWatch(tmp_path), 4 * (2.5 + 8 * 1.8)
    assert watch.look(lived(*RUNS), None) == ""
    known = RunCost.read(tmp_path)
    assert known is not None
    assert (known.hourly, known.currency) == (pytest.approx(price), "EUR")


def test_a_repair_says_what_it_saves(book: Path, tmp_path: Path) -> None:
    form = Form(Layout.of("vertex", primary="3*n1-standard-8", region="us-central1"), tmp_path)
    saved = {
        label: saves
        for finding in form.widget.view["findings"]
        for label, saves in zip(finding["fixes"], finding.get("saves", ()), strict=False)
    }
    assert saved == {
        "Keep one primary replica": "saves 0.84 EUR an hour", "Make 2 of them workers": "",
    }  # fmt: skip
    assert form.widget.view["cost"]["sums"][0] == ["1.26 EUR", "per hour on demand"]


def test_a_run_without_a_limit_goes_on(run: Path, service: FolderService) -> None:
    RunCost(layout="--on folder", hourly=HOUR, currency="USD").write(run)
    carrier.carry(run, {"service": "here"})
    assert Status.read(run).state is State.SUCCEEDED


BOOK = """
currency: EUR
slurm: {node: 2.5, gpu: 1.8, spot: {node: 1}}
ray: {gpu: 2}
local: {node: 0.4}
vertex: {machines: {n1-standard-8: 0.42}, spot: {machines: {n1-standard-8: 0.12}}}
"""


@pytest.fixture
def book(home: Path) -> Path:
    home.mkdir()
    path = home / "prices.yaml"
    path.write_text(BOOK)
    return path


@pytest.mark.parametrize(
    ("layout", "gpus", "hourly"),
    [
        (Layout.of("slurm", workers="4"), 8, 4 * (2.5 + 8 * 1.8)),
        (Layout.of("slurm"), 8, 2.5 + 8 * 1.8),
        # As a form asks, which has no plan that knows the GPUs.
        (Layout.of("slurm", workers="4*gpu:8"), None, 4 * (2.5 + 8 * 1.8)),
        (Layout.of("slurm", workers="4*gpu:a100:2"), None, 4 * (2.5 + 2 * 1.8)),
        (Layout.of("ray", workers="2*node+8*A100"), None, 2 * 8 * 2),
        (Layout.of("ray", primary="1", workers="3"), 2, 4 * 2 * 2),
        (Layout.of("local", workers="7"), 0, 0.4),
        (Layout.of("vertex", primary="n1-standard-8", workers="3*n1-standard-8"), 0, 4 * 0.42),
        (Layout.of("vertex", primary="n1-standard-8", scheduling="SPOT"), 0, 0.12),
    ],
)
def test_prices_of_the_file_come_first(
    book: Path, layout: Layout, gpus: int | None, hourly: float
) -> None:
    price = price_of(layout, gpus)
    assert price.hourly == pytest.approx(hourly)
    assert (price.currency, price.source) == ("EUR", str(book))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("slurm: {node: 1}", "has no currency, such as currency: EUR"),
        ("currency: EUR\nslurm: {node: cheap}", "invalid slurm.node 'cheap': expected a number"),
        ("currency: EUR\nslurm: {hour: 1}", "invalid slurm.hour 1: expected a currency, and"),
        ("currency: EUR\nslurm: {spot: 1}", "invalid slurm.spot 1: expected a currency, and"),
        ("currency: EUR\nslurm: 3", "invalid slurm 3: expected a currency, and"),
        ("currency: [", "can't be read: "),
        ("currency: EUR", "Slurm has no list of prices: write them into prices.yaml"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(book: Path, text: str, why: str) -> None:
    book.write_text(text)
    os.utime(book)
    with pytest.raises(NoPrice, match=why.replace("[", r"\[")):
        price_of(Layout.of("slurm", workers="4"))
