"""What a study costs is the sum of its trials' machines; `--max-cost` ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb import study as studies
from distrain_nb.backends.cost import RunCost
from distrain_nb.errors import OptionError, RunCancelled, RunFailed
from distrain_nb.run.summary import summary_of as run_summary
from distrain_nb.saved.study_table import StudyTable
from distrain_nb.study import Study
from distrain_nb.study.cost import StudyCost
from distrain_nb.study.files import TrialFile, TrialState
from distrain_nb.study.starting import PreparedStudy, start
from distrain_nb.study.summary import summary_of
from distrain_nb.study.trial import StudyTrial
from tests import guests
from tests.processes import ProcessBackend

CENTS_A_SECOND = "currency: EUR\nlocal: {node: 36}\nprocesses: {node: 36}\n"
CELL = """
import time
from distrain_nb import log_metrics
time.sleep(seconds)
log_metrics(loss=(x - 3) ** 2)
"""
TUNED = {"tune": "x=1|2|3|4", "goal": "min:loss", "search": "grid", "parallel": 2}


@pytest.fixture(autouse=True)
def prices(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home.mkdir()
    (home / "prices.yaml").write_text(CENTS_A_SECOND)
    with guests.installed(ProcessBackend, tmp_path / "site", monkeypatch):
        yield home / "prices.yaml"


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, object]:
    return {"on": "processes", "jobs": str(tmp_path / "jobs")}


def cents(text: str) -> float:
    """Return the amount of `0.12 EUR`."""
    amount, currency = text.split()
    assert currency == "EUR"
    return 100 * float(amount)


def prepare(seconds: float = 2, **options: object) -> PreparedStudy:
    code = CELL.replace("seconds", str(seconds))
    return studies.prepare(code, **{**TUNED, **options})


def tune(seconds: float, **options: object) -> Study:
    return start(prepare(seconds, **options))


def test_trials_that_share_this_machine_cost_its_price_once() -> None:
    study = tune(2).wait()
    trials = study.all_trials()
    spanned = max(trial.end or 0 for trial in trials) - min(trial.begin for trial in trials)
    summary = summary_of(study)
    assert cents(summary.cost) == pytest.approx(spanned, abs=1.5)
    assert cents(summary.cost) < 0.8 * sum(trial.duration for trial in trials)
    assert summary.ending.splitlines()[-1] == f"cost: {summary.cost}"
    assert f"; {summary.cost}" in repr(StudyTable(summary))
    assert summary.cost in StudyTable(summary).still()
    assert summary.as_json()["cost"] == summary.cost


def test_trials_elsewhere_cost_what_their_runs_do(elsewhere: dict[str, object]) -> None:
    study = tune(2, **elsewhere).wait()
    runs = [run_summary(trial.run).cost for trial in study.all_trials()]
    assert len(runs) == 4
    total = sum(map(cents, runs))
    assert total > 8
    assert cents(summary_of(study).cost) == pytest.approx(total, abs=1)


@pytest.mark.parametrize("here", [True, False])
def test_a_study_ends_where_it_has_cost_what_it_may(
    here: bool, elsewhere: dict[str, object]
) -> None:
    study = tune(600, max_cost="0.06 EUR", **({} if here else elsewhere))
    with pytest.raises(RunFailed, match=r"it was stopped by --max-cost: it has cost 0.060 EUR"):
        study.wait(120)
    assert {trial.state for trial in study.all_trials()} == {TrialState.CANCELLED}
    assert all(trial.run.state.final for trial in study.all_trials())
    summary = summary_of(study)
    assert cents(summary.cost) >= 6
    assert summary.ending.startswith("it was stopped by --max-cost")


def test_what_a_study_is_expected_to_cost() -> None:
    cost = StudyCost(RunCost(hourly=36.0, currency="EUR"), here=False)
    ended = [TrialFile(n, {}, TrialState.SUCCEEDED, paid=10.0, begin=1, end=20) for n in (1, 2)]
    assert cost.seconds(ended) == 20
    assert replace(cost, here=True).seconds(ended) == 19
    apart = [*ended, TrialFile(3, {}, begin=30, end=34), TrialFile(4, {}, begin=33, end=35)]
    assert replace(cost, here=True).seconds(apart) == 19 + 5
    limited = replace(cost, cost=replace(cost.cost, limit=0.2))
    assert (limited.reaches(19.9), cost.reaches(1e9)) == ("", "")
    assert "it has cost 0.20 EUR" in limited.reaches(20.0)


def test_a_study_that_goes_on_says_what_it_will_have_cost(elsewhere: dict[str, object]) -> None:
    study = tune(4, **elsewhere)
    while not any(trial.state.final for trial in study.all_trials()):
        time.sleep(0.1)
    summary = summary_of(study)
    so_far, end = summary.cost.split(" so far, about ")
    longest_s = max(trial.duration for trial in summary.trials)  # which a busy machine makes long
    study.cancel()
    with pytest.raises(RunCancelled):  # its carriers need the backend to their ends
        study.wait(60)
    paid = [trial.paid for trial in summary.trials if trial.state.final]
    assert cents(so_far) >= 4, so_far
    least = 4 * sum(paid) / len(paid)
    assert max(16, least - 1) <= cents(end.removesuffix(" at the end")) <= 4 * longest_s + 24


def test_a_trial_that_is_just_being_started_counts_at_the_end(elsewhere: dict[str, object]) -> None:
    """For a moment it has no run: the study was to cost a trial less."""
    study = tune(1, **elsewhere).wait()
    summary = summary_of(study)
    *ended, last = summary.trials
    begun = StudyTrial(TrialFile(last.number, dict(last.params), begin=time.time()))
    going_on = replace(summary, state="running", final=False, trials=(*ended, begun))
    cost = StudyCost.read(study.folder, "processes")
    assert cost is not None
    so_far, end = cost.text(going_on).split(" so far, about ")
    by_hand = cents(so_far) + sum(trial.paid for trial in ended) / 3
    assert cents(end.removesuffix(" at the end")) == pytest.approx(by_hand, abs=1)


def test_a_dry_run_says_what_a_study_costs(elsewhere: dict[str, object], prices: Path) -> None:
    last = str(prepare(max_cost="5eur")).splitlines()[-1]
    assert last == f"Cost, by {prices}: 36.0 EUR per hour; stopped at 5.00 EUR"
    last = str(prepare(**elsewhere)).splitlines()[-1]
    by_hand = "36.0 EUR per hour of a trial; 72.0 EUR with 2 at once"
    assert last == f"Cost, by {prices}: {by_hand}"


def test_a_limit_that_cannot_be_kept_is_refused(prices: Path) -> None:
    with pytest.raises(OptionError, match="prices in EUR, not in USD"):
        prepare(max_cost="5USD")
    where = {"on": "vertex", "primary": "n1-standard-4", "project": "p", "region": "us-central1"}
    why = "--max-cost isn't kept for a study whose trials Vertex AI starts; limit it by --trials"
    with pytest.raises(OptionError, match=why):
        prepare(max_cost="5USD", **where)
    prices.unlink()
    with pytest.raises(OptionError, match="this machine has no list of prices"):
        prepare(max_cost="5EUR")
