"""The heat map of slow ranks: which cells it has, and what is drawn and said of them."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distrain_nb.run.charts import drawing
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.metrics.rank_times import RankTimes
from distrain_nb.run.metrics.slow_ranks import ALL, MOST_CELLS, SlowRanks, slow_ranks
from distrain_nb.run.metrics.step_times import StepTimesFolder
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics import event_format, writer

More = Callable[[int, int], dict[str, float]]
STEPS, STEP_S = 100, 0.1


def times(windows: int, more: Callable[[int], dict[str, float]], first: int = 0) -> RankTimes:
    """Windows of a rank that computes 60 ms a step, and `more` in some; it waits for the rest of
    100 ms, as ranks that exchange gradients do."""
    kinds = ("data", "compute", "save", "rest")
    seconds = {kind: np.zeros(windows) for kind in (*kinds, "exchange")}
    seconds["compute"] += 0.06
    for window in range(windows):
        for kind, value in more(window).items():
            seconds[kind][window] += value
    own = sum((seconds[kind] for kind in kinds), np.zeros(windows))
    seconds["exchange"] = np.maximum(0.001, STEP_S - own)
    ends = first + STEPS * np.arange(1.0, windows + 1)
    return RankTimes(ends, np.full(windows, float(STEPS)), seconds, 1e9 + ends, -1, 0)


def found(ranks: int, windows: int, more: More) -> SlowRanks:
    slow = slow_ranks({rank: times(windows, partial(more, rank)) for rank in range(ranks)})
    assert slow
    return slow


def test_a_slow_rank_is_found_though_all_steps_are_equally_long() -> None:
    slow = found(16, 10, lambda rank, window: {"data": 0.03 * (rank == 5 and window >= 4)})
    assert slow.rows == [[rank] for rank in range(16)]
    assert [(cell.row, cell.column, cell.rank, cell.kind) for cell in slow.cells] == [
        (5, column, 5, "data") for column in range(4, 10)
    ]
    assert {round(cell.seconds, 6) for cell in slow.cells} == {0.03}
    assert {round(cell.share, 6) for cell in slow.cells} == {0.3}
    assert slow.edges.tolist() == [STEPS * column for column in range(11)]
    assert slow.ended.tolist() == [1e9 + STEPS * column for column in range(1, 11)]


def test_a_row_of_many_ranks_has_the_slowest_of_them() -> None:
    """A mean would hide one of sixteen."""
    later = {768: 0.05, 770: 0.08}
    slow = found(1024, 4, lambda rank, window: {"compute": later.get(rank, 0) * (window == 2)})
    assert len(slow.rows) == 64 and slow.rows[48] == list(range(768, 784))
    (cell,) = slow.cells
    assert (cell.row, cell.column, cell.rank, round(cell.seconds, 6)) == (48, 2, 770, 0.08)


def test_what_keeps_all_ranks_is_in_their_own_row() -> None:
    slow = found(16, 10, lambda _, window: {"save": 0.2 * (window == 7)})
    (cell,) = slow.cells
    assert (cell.row, cell.column, cell.kind, round(cell.seconds, 3)) == (ALL, 7, "save", 0.161)


def test_little_and_what_one_rank_does_not_say_is_nothing() -> None:
    few = found(16, 10, lambda rank, _: {"compute": 0.004 * (rank == 3)})
    assert few.cells == ()
    late = {
        rank: times(10 - 9 * (rank == 3), lambda _: {}, 900 * (rank == 3)) for rank in range(16)
    }
    begun = slow_ranks(late)
    assert begun and begun.cells == ()
    assert slow_ranks({}) is None


def test_ranks_that_differ_all_the_time_make_a_coarser_map() -> None:
    """The numbers beside the drawing have an end."""
    random = np.random.default_rng(0)
    slow = found(128, 200, lambda *_: {"data": float(0.05 * random.random())})
    assert 0 < len(slow.cells) <= MOST_CELLS
    assert 1 < len(slow.ended) < 200


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[[int], str]:
    """The charts of so many ranks, of which rank 9 computes longer from the second half on."""

    def made(ranks: int) -> str:
        for rank in range(ranks):
            more = 0.03 * (rank == 9)
            of = times(9, lambda window, more=more: {"compute": more * (window > 4)})  # type: ignore[misc]
            folder = tmp_path / EVENTS_FOLDER / STEP_TIMES_FOLDER / f"rank-{rank}"
            events = writer._EventFile(folder)
            for window, end in enumerate(of.ends):
                values = {kind: float(value[window]) for kind, value in of.seconds.items()}
                event = event_format.event(1e9 + end, int(end), {**values, "steps": STEPS})
                events.write(event)
        metrics = Metrics(tmp_path, events=StepTimesFolder(tmp_path))
        metrics.read()
        return drawing.charts(metrics)

    return made


def told(markup: str) -> dict[str, Any]:
    (text,) = re.findall('data-heat="([^"]*)"', markup)
    found: dict[str, Any] = json.loads(html.unescape(text))
    return found


def test_more_ranks_than_charts_have_a_map_in_pages_and_documents(
    drawn: Callable[[int], str],
) -> None:
    markup = drawn(13)
    colour = re.findall('data-series="compute" style="--dn-ink:(#[0-9a-f]{6})"', markup)[0]
    # Columns 4 to 7: the first window is that of the first step.
    assert f'd="M4 {20 + 9 * 14}h4v14h-4Z" fill="{colour}96"' in markup
    assert "Slowest: rank 9, by 30 ms a step in 50 % of the steps (computing)." in markup
    assert told(markup)["cells"] == [[9, column, 9, 0, 30.0] for column in range(4, 8)]
    assert markup.index("dn-heat") < markup.index('class="dn-group"')


def test_few_ranks_have_charts_alone(drawn: Callable[[int], str]) -> None:
    assert "dn-heat" not in drawn(12)
