"""Figures of plotly for users: the page's lines, names and colours."""

from __future__ import annotations

import re
import sys
from colorsys import rgb_to_hls
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from distrain_nb import api
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.run import Run, Store
from distrain_nb.run.charts import drawing
from distrain_nb.run.charts.figure import MANY, colours_of
from distrain_nb.run.charts.lines import Metrics, OverlaidMetrics
from distrain_nb.run.metrics.events import Key
from distrain_nb.run.pages.answers import answer
from distrain_nb.worker.files.folder import EVENTS_FOLDER
from distrain_nb.worker.metrics.writer import append
from tests.server.stored import stored_run
from tests.study.stored import report_curve, stored_curves, stored_study


def reported(home: Path, ranks: int = 2) -> Run:
    run = stored_run(Store(home))
    for rank in range(ranks):
        for step in range(30):
            place = run.folder / EVENTS_FOLDER / f"rank-{rank}"
            append(place, step, {"loss": 1 / (step + 1 + rank), "rate": step})
    return run


def test_a_runs_figure_has_the_lines_of_the_page(home: Path) -> None:
    run = reported(home, ranks=9)  # as many as have colours of their own, and one more
    page = answer(run, "charts", {})["metrics"]
    assert isinstance(page, dict)
    drawn = [
        (key[1], trace["name"], trace["line"]["color"])
        for key, trace in zip(page["shape"]["keys"], page["shape"]["traces"], strict=True)
    ]
    figure = run.figure()
    titles = {("x", "x2")[n]: note.text for n, note in enumerate(figure.layout.annotations)}
    made = [(titles[trace.xaxis], trace.name, trace.line.color) for trace in figure.data]
    assert made == drawn
    assert sum(trace.showlegend for trace in figure.data) == 9, "each name once"
    loss = run.figure("loss")
    assert [trace.line.color for trace in loss.data] == [c for tag, _, c in drawn if tag == "loss"]
    assert np.allclose(loss.data[1].y, [1 / (step + 2) for step in range(30)])
    assert list(loss.data[1].x) == list(range(30))


def test_runs_lie_over_each_other_by_name(home: Path) -> None:
    first, second = reported(home, ranks=1), reported(home, ranks=1)
    figure = api.runs().figure("loss")
    names = {trace.name for trace in figure.data}
    assert names == {f"stored #{run.id}/rank-0" for run in (first, second)}
    compared = api.compare(first, second).figure("loss")
    assert {trace.name for trace in compared.data} == names
    assert len({trace.line.color for trace in compared.data}) == 2


def test_a_metric_that_there_is_not_is_named(home: Path) -> None:
    with pytest.raises(OptionError, match=r"has no metric 'los'.*loss.*There are: loss, rate"):
        reported(home).figure("los")
    with pytest.raises(OptionError, match="has no metrics yet"):
        stored_run(Store(home)).figure()


def test_what_to_install_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = reported(home)
    absent: dict[str, ModuleType | None] = {"plotly": None, "plotly.graph_objects": None}
    for name, module in absent.items():
        monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
    with pytest.raises(DistrainError, match=r"%pip install 'distrain-nb\[plotly\]'"):
        run.figure("loss")


def test_a_thinned_line_has_a_band_in_its_colour(home: Path) -> None:
    run = stored_run(Store(home))
    report_curve(run.folder, [5.0 if step in (700, 702) else 1.0 for step in range(3_000)], "loss")
    metrics = Metrics(run.folder)
    metrics.read()
    drawn = drawing.charts(metrics)
    band, line = re.findall(r'class="(dn-spread|dn-line)" d="[^"]+"[^>]*(#[0-9a-f]+)"', drawn)
    assert band == ("dn-spread", line[1])
    low, high, line = run.figure("loss").data
    assert (high.fill, high.hoverinfo, max(high.y), min(low.y)) == ("tonexty", "skip", 5.0, 1.0)
    assert [trace.showlegend for trace in (low, high, line)] == [False, False, True]


def test_a_study_has_a_figure_for_each_chart(home: Path) -> None:
    study = stored_study(home, 12, 12)
    figures = study.figures
    names = ("lr", "width", "layers", "optimizer", "momentum")
    slices = [f"val/loss by {name}" for name in names]
    assert list(figures)[:7] == ["val/loss", *slices, "parallel coordinates"]
    dots, best = figures["val/loss"].data
    trials = study.trials["val/loss"].dropna()
    assert dict(zip(dots.x, dots.y, strict=True)) == pytest.approx(trials.to_dict())
    assert best.y[-1] == study.best.goals["val/loss"]
    lines = figures["parallel coordinates"].data[0].dimensions
    assert [line.label for line in lines] == [*names, "val/loss"]
    assert set(lines[3].ticktext) == set(study.trials["optimizer"])


def test_a_study_s_figure_has_a_learning_curve_for_each_trial(home: Path) -> None:
    study = stored_study(home, 12, 12)
    stored_curves(study, 40)
    lines = study.figures["learning curves of val/loss"].data
    assert {line.name for line in lines} >= {"trial 1, succeeded", "trial 9, stopped"}
    assert len(lines) == 12 and lines[-1].name == f"trial {study.best.number}, succeeded"
    assert lines[-1].line.width > lines[0].line.width
    assert list(lines[0].x) == list(range(40))


def test_a_comparison_has_a_colour_for_each_run_in_the_order_of_its_table() -> None:
    runs = ("late #9", "early #2", "early #21")
    keys = [Key(f"{run}{rank}", "loss") for run in runs for rank in ("", "/rank-1")]
    metrics = OverlaidMetrics({run: Metrics(Path(run)) for run in runs})
    colours = colours_of(keys, metrics.family)
    assert list(colours) == [key.series for key in keys]
    hues = {
        name: round(rgb_to_hls(*(_part(ink, at) for at in (1, 3, 5)))[0], 2)
        for name, ink in colours.items()
    }
    assert len(set(colours.values())) == 6
    for run in runs:
        assert hues[run] == hues[f"{run}/rank-1"]
    assert len({hues[run] for run in runs}) == 3


def _part(ink: str, at: int) -> float:
    return int(ink[at : at + 2], 16) / 255


def test_ranks_of_many_that_are_neighbours_have_colours_far_apart() -> None:
    colours = list(colours_of([Key(f"rank-{n}", "loss") for n in range(256)]).values())
    for near in range(1, 8):
        apart = max(abs(_part(colours[0], at) - _part(colours[near], at)) for at in (1, 3, 5))
        assert apart > 0.2, near


def test_as_many_lines_become_a_band_on_the_page_as_in_a_saved_chart() -> None:
    page = Path(__file__).parents[2] / "page" / "src" / "charts" / "band.js"
    assert re.findall(r"^export const MANY = (\d+);", page.read_text(), re.MULTILINE) == [str(MANY)]
