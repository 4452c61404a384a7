"""What figures and drawings have of a run's event files."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from tensorboardX import SummaryWriter

from distrain_nb.run.charts import drawing, figure
from distrain_nb.run.charts.lines import Metrics, OverlaidMetrics
from distrain_nb.run.metrics.events import Key
from distrain_nb.run.summary import short_number
from distrain_nb.saved import document
from distrain_nb.ui.charts import RunCharts
from distrain_nb.worker.files.folder import EVENTS_FOLDER, RESOURCES_FOLDER
from distrain_nb.worker.metrics import writer
from tests.ui.runs import RunFolder


def metrics_of(folder: Path, below: str = EVENTS_FOLDER) -> Metrics:
    made = Metrics(folder, below)
    made.read()
    return made


def test_every_series_is_in_the_legend_once(tmp_path: Path) -> None:
    for series, tags in (("train", ["loss", "rate"]), ("test", ["accuracy"])):
        with SummaryWriter(str(tmp_path / EVENTS_FOLDER / series)) as summary:
            for tag in tags:
                summary.add_scalar(tag, 1.0, 1)
    drawn = drawing.charts(metrics_of(tmp_path))
    assert sorted(re.findall('data-series="([^"]*)"', drawn)) == ["test", "train"]


def test_ranks_are_in_the_order_of_their_numbers() -> None:
    keys = [Key(f"rank-{rank}", "loss") for rank in (1, 10, 11, 2, 0)]
    assert figure.series_of(keys) == ["rank-0", "rank-1", "rank-2", "rank-10", "rank-11"]
    assert figure.series_of([Key("val", "loss"), Key("", "loss")]) == ["", "val"]


def test_many_ranks_are_drawn_as_a_band_with_the_first(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / "7")
    for rank in range(12):
        run.report(5, series=f"rank-{rank}", loss=float("nan") if rank == 3 else float(rank))
    metrics = metrics_of(run.folder)
    drawn = drawing.charts(metrics)
    assert drawn.count('class="dn-band"') == 1
    assert drawn.count('class="dn-line"') == 2
    assert drawn.count("data-series=") == 12
    assert len(set(re.findall('--dn-ink:(#[0-9a-f]{6})"', drawn))) == 13
    assert "<summary>All 12 lines</summary>" in drawn
    metrics.in_bands = False  # as those of runs that are compared
    assert drawing.charts(metrics).count('class="dn-line"') == 12


def test_of_very_many_metrics_the_first_are_drawn(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / EVENTS_FOLDER)) as summary:
        for number in range(1_000):
            summary.add_scalar(f"metric{number:03}", 1.0, 1)
    many = metrics_of(tmp_path)
    bundle = document.chart_bundle(many)
    assert bundle["text/html"].count("<svg") == figure.MOST_TAGS
    assert "the first 60 of 1,000 metrics; run.metrics() has all" in bundle["text/html"]
    assert len(many.tags) == 1_000


def test_the_last_points_are_drawn_however_short_a_time_ago_others_were(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / "7")
    charts = RunCharts(Metrics(run.folder))

    def counts() -> list[int]:
        return [len(line["step"]) // 4 for widget in charts.widgets for line in widget.lines]

    run.report(3, loss=1.0)
    charts.refresh()
    run.report(2, loss=1.0)
    charts.refresh()
    assert counts() == [3]
    charts.refresh(last=True)
    assert counts() == [5]


def test_a_document_tells_what_else_there_is(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "7" / EVENTS_FOLDER)) as summary:
        summary.add_scalar("loss", 1.0, 1)
        summary.add_image("digits", np.zeros((1, 2, 2), np.uint8), 1)
        summary.add_pr_curve("curve", np.array([0, 1]), np.array([0.1, 0.9]), 1)
        summary.add_hparams({"<rate>": 0.5}, {}, name="trial")
    run = tmp_path / "7"
    writer.append(run / RESOURCES_FOLDER, 1, {"cpu %": 99.0})
    shown = document.chart_bundle(metrics_of(run), None, metrics_of(run, RESOURCES_FOLDER))[
        "text/html"
    ]
    assert "1 image: %distrain attach 7" in shown
    assert "not shown: curve (PR curve, 1 value)" in shown
    assert '<th scope="row">&lt;rate&gt;</th><td>0.5</td>' in shown
    assert shown.index("Resources by rank") < shown.index("cpu %")


def test_many_metrics_are_grouped_by_prefix(tmp_path: Path) -> None:
    tags = [f"{prefix}/{name}" for name in "abc" for prefix in ("train", "val")]
    assert figure.groups([*tags[:5], "rate"]) == {"": [*tags[:5], "rate"]}, "few are together"
    assert list(figure.groups([*tags, "rate"])) == ["train", "val", ""]
    assert figure.groups([f"m{n}" for n in range(9)]) == {"": [f"m{n}" for n in range(9)]}


def test_lines_without_a_finite_value_are_told_in_words(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / "7")
    run.report(3, "rank-0", loss=float("nan"), rate=1.0)
    run.report(3, "rank-1", loss=float("nan"), rate=float("inf"))
    drawn = drawing.charts(metrics_of(run.folder))
    said = re.findall('<div class="dn-words">([^<]*)</div>', drawn)
    assert said == ["all 6 values are NaN", "no finite values: rank-1"]


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([3.0, 2.0, math.nan, math.nan], "NaN from step 2 on"),
        ([3.0, math.inf, -math.inf, math.nan], "infinite or NaN from step 1 on"),
        ([3.0, math.inf, 1.0, 1.0], "infinite at step 1"),
        ([math.nan, 2.0, math.nan, 1.0], "NaN at 2 steps, first at step 0"),
        ([3.0, 2.0, 1.0, 0.0], ""),
    ],
)
def test_a_chart_says_where_values_are_not_finite(
    tmp_path: Path, values: list[float], note: str
) -> None:
    for step, value in enumerate(values):
        writer.append(tmp_path / EVENTS_FOLDER, step, {"loss": value})
    metrics = metrics_of(tmp_path)
    assert re.findall('<div class="dn-words">([^<]*)</div>', drawing.charts(metrics)) == [note]
    newest = f"newest {short_number(values[-1])}"
    alternative = ", ".join(filter(None, ("loss by step", newest, note)))
    assert re.findall('<img alt="([^"]*)"', document.still_charts(metrics)) == [alternative]


def test_a_chart_names_the_ranks_whose_values_are_not_finite(tmp_path: Path) -> None:
    for rank in range(8):
        for step in range(9):
            is_finite = rank < 2 or step < rank // 6 + 4
            value = 1.0 if is_finite else math.nan
            writer.append(tmp_path / EVENTS_FOLDER / f"rank-{rank}", step, {"loss": value})
    drawn = drawing.charts(metrics_of(tmp_path))
    (said,) = re.findall('<div class="dn-words">([^<]*)</div>', drawn)
    first, later = "rank-2, rank-3, rank-4 and 1 more", "rank-6, rank-7"
    assert said == f"NaN from step 4 on: {first}; NaN from step 5 on: {later}"


def test_a_line_is_interrupted_where_a_value_is_not_finite(tmp_path: Path) -> None:
    folder = tmp_path / EVENTS_FOLDER
    for step, value in enumerate([1.0, 2.0, float("nan"), 2.0, 1.0]):
        writer.append(folder, step, {"loss": value})
    (line,) = re.findall('class="dn-line" d="([^"]*)"', drawing.charts(metrics_of(tmp_path)))
    assert re.sub("[^ML]", "", line) == "MLML"


def test_long_numbers_have_the_room_that_they_take(tmp_path: Path) -> None:
    for name, value in (("short", 1.0), ("long", -123_456.789)):
        run = RunFolder(tmp_path / name)
        run.report(3, loss=value)
    widths = [
        int(re.search(r"--dn-left:(\d+)px", drawing.charts(metrics_of(tmp_path / name)))[1])  # type: ignore[index]
        for name in ("short", "long")
    ]
    assert widths[0] < widths[1]


def test_runs_side_by_side_are_lines(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path / "runs" / "1"), RunFolder(tmp_path / "runs" / "2")
    first.report(3, loss=1.0)
    second.report(3, loss=2.0)
    both = OverlaidMetrics({"one": Metrics(first.folder), "two": Metrics(second.folder)})
    both.read()
    assert drawing.charts(both).count('class="dn-line"') == 2
    lines = {key: both.line(key) for key in both.keys}
    assert "stackgroup" not in repr(figure.chart_data(both, lines))
