"""Where the time of a run goes: shares and findings, from files as its ranks write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.findings import Severity
from distrain_nb.run.charts import drawing, figure
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.metrics.rank_times import StepTimes
from distrain_nb.run.metrics.step_findings import findings_of, sentence_of
from distrain_nb.run.metrics.step_times import StepTimesFolder, step_times
from distrain_nb.run.pages.curves import curves
from distrain_nb.run.streams import Scalars
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics.writer import append

WINDOWS = 10
STEPS = 100  # of each window


def written(
    folder: Path, *ranks: dict[str, float], workers: int = 2, gradient_bytes: float = 25e6
) -> StepTimes:
    """Write ten windows for each rank, whose seconds a step are those; the first step is slow."""
    for rank, seconds in enumerate(ranks):
        first = {kind: 50 * value for kind, value in seconds.items()}
        write(folder, rank, 1, 1, first, workers, gradient_bytes)
        for window in range(1, WINDOWS + 1):
            write(folder, rank, 1 + window * STEPS, STEPS, seconds, workers, gradient_bytes)
    return step_times(folder)


def write(
    folder: Path,
    rank: int,
    step: int,
    steps: int,
    seconds: dict[str, float],
    workers: int,
    gradient_bytes: float = 25e6,
) -> None:
    zero = dict.fromkeys(("data", "compute", "exchange", "save", "rest"), 0.0)
    facts = {"steps": steps, "loader workers": workers, "gradient bytes": gradient_bytes}
    place = folder / EVENTS_FOLDER / STEP_TIMES_FOLDER / f"rank-{rank}"
    append(place, step, {**zero, **seconds, **facts})


def test_a_run_that_waits_for_data_is_told_so(tmp_path: Path) -> None:
    times = written(tmp_path, {"data": 0.061, "compute": 0.039})
    assert sentence_of(times) == "a step takes 100 ms: 61 % waiting for data, 39 % computing"
    (finding,) = findings_of(times)
    assert (finding.code, finding.severity) == ("time.data", Severity.WARNING)
    assert finding.message == (
        "61 % of a step is waiting for data (2 loader workers a rank): write "
        "DataLoader(…, num_workers=6, persistent_workers=True), or read shards (%distrain shard)"
    )


@pytest.mark.parametrize(
    ("workers", "said"), [(0, "num_workers=2,"), (-1, "read ahead"), (32, "num_workers=32,")]
)
def test_the_line_fits_the_loader(tmp_path: Path, workers: int, said: str) -> None:
    times = written(tmp_path, {"data": 0.061, "compute": 0.039}, workers=workers)
    assert said in findings_of(times)[0].message


def test_a_long_exchange_is_named(tmp_path: Path) -> None:
    both = {"compute": 0.06, "exchange": 0.04}
    (finding,) = findings_of(written(tmp_path, both, both))
    assert finding.code == "time.exchange"
    assert "the exchange takes 40 % of a step (40 ms for 25 MB of gradients)" in finding.message


def test_few_gradients_are_told_in_bytes(tmp_path: Path) -> None:
    both = {"compute": 0.06, "exchange": 0.04}
    (finding,) = findings_of(written(tmp_path, both, both, gradient_bytes=36))
    assert "(40 ms for 36 B of gradients)" in finding.message


def test_the_rank_that_comes_last_is_named_with_its_reason(tmp_path: Path) -> None:
    fast = {"compute": 0.3, "exchange": 0.2}
    slow = {"compute": 0.3, "save": 0.18, "exchange": 0.02}
    (finding,) = findings_of(written(tmp_path, fast, fast, slow, fast))
    assert finding.code == "time.slow-rank", "the others wait for the rank, not for the network"
    assert finding.message.startswith(
        "rank 2 arrives 180 ms after the others: saving takes it 180 ms longer"
    )


def test_findings_about_saving_do_not_contradict_each_other(tmp_path: Path) -> None:
    """Rank 0 alone saves, as it should: nothing says to do that on all ranks, or on one alone."""
    saves = {"compute": 0.1, "save": 0.2, "exchange": 0.0}
    findings = findings_of(written(tmp_path / "1", saves, {"compute": 0.1, "exchange": 0.2}))
    assert {finding.code for finding in findings} == {"time.slow-rank", "time.save"}
    assert not any("all ranks" in f.message or "rank 0 alone" in f.message for f in findings)
    each = {"compute": 0.1, "save": 0.1}
    (finding,) = findings_of(written(tmp_path / "2", each, each))
    assert "and on rank 0 alone" in finding.message


def test_a_rank_may_be_slow_since_a_step(tmp_path: Path) -> None:
    written(tmp_path, {"compute": 0.1, "exchange": 0.02}, {"compute": 0.1, "exchange": 0.02})
    for window in range(WINDOWS + 1, WINDOWS + 3):
        step = 1 + window * STEPS
        write(tmp_path, 0, step, STEPS, {"compute": 0.1, "exchange": 0.07}, 2)
        write(tmp_path, 1, step, STEPS, {"compute": 0.15, "exchange": 0.02}, 2)
    (finding,) = findings_of(step_times(tmp_path))
    said = f"rank 1 arrives 50 ms after the others since step {WINDOWS * STEPS + 2}: computing"
    assert finding.message.startswith(said)


def test_short_and_balanced_runs_say_nothing(tmp_path: Path) -> None:
    balanced = {"data": 0.01, "compute": 0.08, "exchange": 0.01}
    assert not findings_of(written(tmp_path / "1", balanced, balanced))
    assert not findings_of(written(tmp_path / "2", {"data": 0.005, "compute": 0.001})), "5 seconds"
    assert not findings_of(step_times(tmp_path / "3"))


def test_each_rank_is_a_chart_of_its_kinds(tmp_path: Path) -> None:
    written(tmp_path, {"data": 0.06, "compute": 0.04, "tokenize": 0.01}, {"compute": 0.11})
    folder = StepTimesFolder(tmp_path)
    metrics = Metrics(tmp_path, events=folder)
    metrics.read()
    assert metrics.tags == ("ms a step, rank 0", "ms a step, rank 1")
    assert metrics.last()["ms a step, rank 0"] == pytest.approx(110)
    drawn = drawing.charts(metrics)
    assert "61 % waiting" not in drawn
    assert "a step takes 110 ms: 27 % waiting for data" in drawn
    areas = drawn.count('Z" fill="#')
    lines = {key: metrics.line(key) for key in metrics.keys}
    assert areas == len(lines) == 5
    shape = figure.chart_data(metrics, lines)
    assert {trace["stackgroup"] for trace in shape["traces"]} == {"y", "y2"}  # type: ignore[attr-defined]
    finer = curves(Scalars(folder), {"tag": "ms a step, rank 0"})["lines"]
    assert [line["run"] for line in finer] == ["data", "compute", "tokenize"]
    assert finer[0]["value"][-1] == pytest.approx(60)


@pytest.mark.parametrize(("ranks", "first"), [(12, 0), (13, 9)])
def test_of_many_ranks_the_late_one_is_the_first_chart(
    tmp_path: Path, ranks: int, first: int
) -> None:
    fast, slow = {"compute": 0.3, "exchange": 0.2}, {"compute": 0.48, "exchange": 0.02}
    written(tmp_path, *(slow if rank == 9 else fast for rank in range(ranks)))
    metrics = Metrics(tmp_path, events=StepTimesFolder(tmp_path))
    metrics.read()
    others = [rank for rank in range(ranks) if rank != first]
    assert metrics.tags == tuple(f"ms a step, rank {rank}" for rank in (first, *others))
    text = drawing.charts(metrics)
    assert (text.index("rank 9 arrives") < text.index("<path")) == (ranks > 12)


def test_step_times_of_more_ranks_than_are_drawn_are_elsewhere(tmp_path: Path) -> None:
    written(tmp_path, *[{"compute": 0.1}] * 13)
    metrics = Metrics(tmp_path, events=StepTimesFolder(tmp_path))
    metrics.read()
    text = drawing.charts(metrics)
    assert "the first 12 of 13 ranks, late ones first; run.step_times() has all" in text
    assert text.count('class="dn-chart"') == 12


def test_step_times_are_no_metrics_of_the_program(tmp_path: Path) -> None:
    written(tmp_path, {"compute": 0.1})
    append(tmp_path / EVENTS_FOLDER, 1, {"loss": 0.5})
    events = EventFolder(tmp_path / EVENTS_FOLDER)
    events.read()
    assert [key.tag for key in events.keys] == ["loss"]


@pytest.mark.parametrize("slow", [96, 97])
def test_one_of_many_that_comes_last_is_named(tmp_path: Path, slow: int) -> None:
    """Where ranks are many, each is compared with some of them, be it one of these or not."""
    fast = {"compute": 0.3, "exchange": 0.2}
    ranks = [fast] * 128
    ranks[slow] = {"compute": 0.48, "exchange": 0.02}
    (finding,) = findings_of(written(tmp_path, *ranks))
    assert finding.message.startswith(f"rank {slow} arrives 180 ms after the others")
