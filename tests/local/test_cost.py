"""`--max-cost` ends a run on this machine whose price stands in `prices.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest

import distrain_nb
from distrain_nb.errors import OptionError, RunFailed

CENTS_A_SECOND = "currency: EUR\nlocal: {node: 36}\n"


@pytest.fixture(autouse=True)
def prices(home: Path) -> Path:
    home.mkdir()
    (home / "prices.yaml").write_text(CENTS_A_SECOND)
    return home / "prices.yaml"


def test_a_run_ends_where_it_has_cost_what_it_may() -> None:
    run = distrain_nb.submit("import time\ntime.sleep(600)", on="local", max_cost="0.03 EUR")
    with pytest.raises(RunFailed, match=r"it was stopped by --max-cost: it has cost 0.030 EUR"):
        run.wait()
    (shown,) = distrain_nb.runs()
    assert shown.id == run.id


def test_it_is_refused_where_no_price_is_known(prices: Path) -> None:
    prices.unlink()
    why = "--max-cost 1EUR can't be kept: this machine has no list of prices"
    with pytest.raises(OptionError, match=why):
        distrain_nb.submit("1", on="local", max_cost="1EUR")
    assert not list(distrain_nb.runs())


def test_all_attempts_of_a_run_count() -> None:
    code = "import sys, time\ntime.sleep(2)\nsys.exit(75)"
    run = distrain_nb.submit(code, on="local", max_cost="0.03 EUR", retries=5, retry_on="75")
    with pytest.raises(RunFailed, match=r"it was stopped by --max-cost: it has cost 0.030 EUR"):
        run.wait()
    assert "attempt 2 of 6" in run.logs()
