"""The charts of a study: where trials stand, and what is drawn of them."""

from __future__ import annotations

import math
import random
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from distrain_nb.saved.study_table import StudyTable
from distrain_nb.study.answers import page_of
from distrain_nb.study.charts.axes import ValueAxis, goal_axis, parameter_axes, power
from distrain_nb.study.charts.curves import POINTS_IN_ALL, LearningCurves
from distrain_nb.study.charts.drawing import MOST_TRIALS, StudyDrawing
from distrain_nb.study.files import TrialFile, TrialState
from distrain_nb.study.importances import FEWEST_TRIALS, Importances, importances
from distrain_nb.study.study import Study
from distrain_nb.study.summary import best_so_far, summary_of, trial_ranks
from distrain_nb.study.trial import StudyTrial
from distrain_nb.tuning import options
from distrain_nb.tuning.spec import Goal
from distrain_nb.worker.files.status import Progress, State, Status
from tests.study.stored import report_curve, stored_curves, stored_study

LOSS = Goal("loss", "min")


def trial(
    number: int, loss: float | None, state: str = "succeeded", **values: object
) -> StudyTrial:
    goals = {} if loss is None else {"loss": loss}
    return StudyTrial(TrialFile(number, dict(values), TrialState(state), goals=goals))


def axes_of(*tuned: str) -> list[ValueAxis]:
    return parameter_axes(options.study({"tune": list(tuned)}))


def test_numbers_stand_where_their_scale_has_them() -> None:
    line, log, reverse = axes_of("a=0.0..10.0", "b=1e-4..1.0:log", "c=1e-4..1.0:reverse-log")
    assert [line.share(value) for value in (0, 5, 10)] == pytest.approx([0.04, 0.5, 0.96])
    assert [log.share(value) for value in (1e-4, 1e-2, 1.0)] == pytest.approx([0.04, 0.5, 0.96])
    assert reverse.share(1.0001 - 1e-2) == pytest.approx(0.5)
    assert [text for _, text in log.ticks] == ["1e−4", "0.001", "0.01", "0.1", "1"]
    assert log.share(None) is log.share("word") is log.share(float("nan")) is None


def test_listed_values_stand_equally_far_from_each_other() -> None:
    (width,) = axes_of("width=64|16|32")
    assert width.ticks == [(pytest.approx(1 / 6), "16"), (0.5, "32"), (pytest.approx(5 / 6), "64")]
    assert width.share(32) == 0.5 and width.share(33) is None


def test_a_parameter_of_several_conditions_has_one_axis() -> None:
    _, rate = axes_of("on=a|b", "rate[on=a]=0.0..1.0", "rate[on=b]=2.0..4.0")
    assert (rate.low, rate.high, rate.kind) == (0.0, 4.0, "linear")


def test_a_goal_that_spans_powers_of_ten_has_a_logarithmic_axis() -> None:
    assert goal_axis("loss", [0.01, 3.0, float("nan")]).kind == "log"
    assert goal_axis("loss", [0.5, 3.0]).kind == "linear"
    assert goal_axis("loss", [0.0, 300.0]).kind == "linear"
    assert goal_axis("loss", [2.0]).share(2.0) == 0.5
    assert [power(value) for value in (1e-5, 0.001, 20.0, 3e6)] == ["1e−5", "0.001", "20", "3e+6"]


def test_the_best_so_far_is_of_trials_that_came_to_their_end() -> None:
    trials = [trial(1, 3.0), trial(2, None, "failed"), trial(3, 1.0, "stopped"), trial(4, 2.0),
              trial(5, 2.5), trial(6, float("nan"))]  # fmt: skip
    assert best_so_far(trials, LOSS) == [(1, 3.0), (4, 2.0)]
    assert best_so_far(trials, Goal("loss", "max")) == [(1, 3.0)]
    assert best_so_far(trials[1:3], LOSS) == [(3, 1.0)]
    assert trial_ranks(trials, LOSS) == {
        1: 0.0,
        5: pytest.approx(1 / 3),
        4: pytest.approx(2 / 3),
        3: 1,
    }


def test_each_trial_is_drawn_where_it_stands(tmp_path: Path) -> None:
    summary = summary_of(stored_study(tmp_path, 30, 60))
    drawing = StudyDrawing(summary, {"lr": 0.75, "layers": 0.25})
    sheet = drawing.sheet()
    assert re.findall(r'data-tag="([^"]+)"', sheet) == [
        "val/loss", "importance", "parallel coordinates",
        "lr", "width", "layers", "optimizer", "momentum",
    ]  # fmt: skip
    first = drawing.shares()["1"]
    x, y = first[0] or 0, first[-1] or 0
    lr = sheet[sheet.index('data-tag="lr"') : sheet.index('data-tag="width"')]
    drawn = re.search(r'data-trial="1" d="M(\S+) (\S+)h0"', lr)
    assert drawn and float(drawn[1]) == pytest.approx(1000 * x, abs=0.1)
    assert float(drawn[2]) == pytest.approx(1000 * (1 - y), abs=0.1)
    assert sheet.count('class="dn-failure" data-trial="25"') == 1
    best = summary.front[0].number
    assert f'class="dn-trial dn-best" data-trial="{best}"' in sheet
    assert '<i style="width:75.0%"></i></td><td>75%</td>' in sheet


def test_each_trial_has_a_learning_curve(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 30, 60)
    stored_curves(study, 100)
    summary = summary_of(study)
    curves = LearningCurves(summary.trials, "val/loss", ["val/loss"])
    assert list(curves.points) == [trial.number for trial in summary.trials]
    assert (len(curves.points[1]), len(curves.points[9])) == (100, 40)  # the 9th was stopped
    assert (curves.across.low, curves.across.high, curves.note) == (0.0, 99.0, "")
    sheet = StudyDrawing(summary, {}).sheet()
    tags = re.findall(r'data-tag="([^"]+)"', sheet)
    assert tags[:3] == ["val/loss", "learning curves of val/loss", "parallel coordinates"]
    drawn = sheet[sheet.index('data-tag="learning') : sheet.index('data-tag="parallel')]
    order = re.findall(r'class="dn-trial (\S+)" data-trial="(\d+)" d="M40 \d+L[^M"]+"', drawn)
    assert len(order) == 30 and order[-1] == ("dn-best", str(summary.front[0].number))
    faint = {number for kind, number in order[:4]}  # stopped and failed, below the others
    assert faint == {"9", "18", "27", "25"}


def test_values_that_were_reported_once_are_no_curve(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 3, 3)
    for trial in study.all_trials():
        report_curve(tmp_path / "runs" / str(trial.run_id), [0.5])
    assert "learning curves" not in StudyDrawing(summary_of(study), {}).sheet()
    none = stored_study(tmp_path / "none", 3, 3)  # whose runs were deleted
    assert "learning curves" not in StudyDrawing(summary_of(none), {}).sheet()


def test_a_curve_goes_on_with_its_trial(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 1, 3)
    running = replace(study.all_trials()[0]._file, state=TrialState.RUNNING, end=0.0)
    running.write(study.folder)
    run = tmp_path / "runs" / "1"
    report_curve(run, [3.0, 2.0])
    Status(State.RUNNING).write(run)

    def values() -> list[float]:
        (trial,) = study.all_trials()
        return [float(value) for value in trial.curves(["val/loss"], 256)["val/loss"]["value"]]

    assert values() == [3.0, 2.0]
    report_curve(run, [1.0], first=2)
    assert values() == [3.0, 2.0]  # as of then
    replace(running, steps=3).write(study.folder)
    assert values() == [3.0, 2.0, 1.0]
    replace(running, state=TrialState.SUCCEEDED, run=2).write(study.folder)
    report_curve(tmp_path / "runs" / "2", [7.0, 6.0])
    assert values() == [7.0, 6.0]  # of the run that tried again


def test_a_cloud_s_values_may_come_after_a_trial_s_end(tmp_path: Path) -> None:
    study, run = stored_study(tmp_path, 1, 1), tmp_path / "runs" / "1"
    run.mkdir(parents=True)
    Status(State.RUNNING).write(run)
    (trial,) = study.all_trials()
    assert len(trial.curves(["val/loss"], 256)["val/loss"]) == 0
    report_curve(run, [2.0, 1.0])
    Status(State.SUCCEEDED).write(run)
    assert len(trial.curves(["val/loss"], 256)["val/loss"]) == 2


def test_trials_that_diverge_leave_the_others_apart(tmp_path: Path) -> None:
    def curves_of(*values: list[float]) -> LearningCurves:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        study = stored_study(folder, len(values), len(values))
        for trial, own in zip(study.all_trials(), values, strict=True):
            report_curve(folder / "runs" / str(trial.run_id), own)
        return LearningCurves(study.all_trials(), "val/loss", ["val/loss"])

    fall = [2.0 / (step + 1) for step in range(50)]
    lost = curves_of(fall, fall, [1.0, 1e9, 1e30, math.inf, math.nan])
    assert (lost.axis.high, lost.note) == (2.0, "shown: 0.04 to 2")
    assert lost.path(3).count("M") == 1 and "-1000" in lost.path(3)
    wide = curves_of(fall, [1e3 * value for value in fall])
    assert (wide.axis.kind, wide.axis.high, wide.note) == ("log", 2000.0, "")
    assert not curves_of([math.nan, math.nan], [math.inf] * 3)


def test_many_long_curves_are_drawn_by_few_points(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 200, 200)
    spike = [9.0 if step == 321 else 1.0 + step % 7 / 10 for step in range(1000)]
    for trial in study.all_trials():
        report_curve(tmp_path / "runs" / str(trial.run_id), spike)
    curves = LearningCurves(study.all_trials(), "val/loss", ["val/loss"])
    assert sum(map(len, curves.points.values())) <= POINTS_IN_ALL
    assert all(points["value"].max() == 9.0 for points in curves.points.values())


def test_of_very_many_trials_the_newest_are_drawn_and_the_best(tmp_path: Path) -> None:
    summary = summary_of(stored_study(tmp_path, 1, 2))
    losses = [0.1, *(1.0 + number for number in range(MOST_TRIALS + 20))]
    many = tuple(
        StudyTrial(TrialFile(n, {"lr": 0.01}, TrialState.SUCCEEDED, goals={"val/loss": loss}))
        for n, loss in enumerate(losses, start=1)
    )
    drawing = StudyDrawing(replace(summary, trials=many, front=many[:1]), {})
    assert list(drawing.shares())[:2] == ["1", "22"]
    assert f"{MOST_TRIALS + 1} of {len(many)} trials are drawn" in drawing.sheet()


def test_names_are_escaped(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 3, 3, tune=['word="<b>"|"&"'], goal=["min:val/loss"])
    sheet = StudyDrawing(summary_of(study), {}).sheet()
    assert "&lt;b&gt;" in sheet and "<b>&" not in sheet and '"<b>"' not in sheet


def test_a_tuning_job_that_is_staged_shows_its_phase_as_a_run_does(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 0, 9, State.STARTING)
    replace(study.file, backend="vertex").write(study.folder)
    sending = Progress("sending the image", 10 << 20, 40 << 20, time.time())
    status = Status(State.STARTING).enter(State.STARTING, "packaging")
    status = status.reach(sending.phase, time.time() + 1)
    note = "can't reach the service, trying again"
    replace(status, progress=sending, note=note).write(study.folder)
    summary = summary_of(Study(study.folder))
    told = page_of(summary, {})["summary"]
    assert (told["phase"], told["note"]) == ("sending the image", note)
    assert [step["label"] for step in told["steps"]] == ["captured", "packaging", sending.phase]
    assert told["progress"]["total"] == 40 << 20
    line = "study 1 (sweep): starting (sending the image), 0 of 9 trials; "
    assert summary.line.startswith(f"{line}sending the image: 10 MiB of 40 MiB")
    assert note in repr(StudyTable(summary))
    assert "starting (sending the image)" in StudyTable(summary).still()
    here = page_of(summary_of(stored_study(tmp_path / "here", 1, 9)), {})["summary"]
    assert (here["phase"], here["steps"], here["progress"]) == ("", [], None)


@pytest.mark.parametrize(
    ("backend", "adds", "stops"),
    [
        ("local", True, True),
        ("sagemaker", False, True),
        ("vertex", False, False),
        ("of another machine", False, False),
    ],
)
def test_a_page_offers_what_can_be_asked_of_a_study(
    tmp_path: Path, backend: str, adds: bool, stops: bool
) -> None:
    study = stored_study(tmp_path, 1, 2)
    replace(study.file, backend=backend).write(study.folder)
    told = page_of(summary_of(Study(study.folder)), {})["summary"]
    assert (told["adds_trials"], told["stops_trials"]) == (adds, stops)


def test_a_page_gets_charts_once(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 3, 9)
    told = page_of(summary_of(study), {})
    assert told["charts"]
    again = page_of(summary_of(study), {}, str(told["seen"]))
    assert again["charts"] is None and again["seen"] == told["seen"]
    study.more(2)
    assert page_of(summary_of(study), {}, str(told["seen"]))["charts"]


def test_an_estimate_of_the_end_needs_trials_that_have_ended(tmp_path: Path) -> None:
    summary = summary_of(stored_study(tmp_path, 30, 60))
    assert summary.seconds_left == pytest.approx(30 * 40 / 4)
    assert summary.left == "about 5 min left"
    assert replace(summary, state=State.SUCCEEDED).left == ""
    assert replace(summary, trials=()).left == ""


@pytest.mark.slow  # imports Optuna
def test_what_matters_most_is_found_by_optuna(tmp_path: Path) -> None:
    summary = summary_of(stored_study(tmp_path, 60, 60, State.SUCCEEDED))
    found = importances(summary.spec, summary.trials)
    assert next(iter(found)) == "lr" and sum(found.values()) == pytest.approx(1)
    assert set(found) <= set(summary.names)
    assert importances(summary.spec, summary.trials[: FEWEST_TRIALS - 1]) == {}
    beside = Importances()
    beside.of(summary.spec, summary.trials)
    assert beside.of(summary.spec, summary.trials, wait=True) == found
    assert beside.of(summary.spec, summary.trials[:30]) == found


@pytest.mark.slow  # imports Optuna and scikit-learn
def test_importances_are_those_of_the_library(tmp_path: Path) -> None:
    """Of trials in which lr spans four units of the goal, drop half of one and width a tenth."""
    spec = options.study(
        {"tune": ["lr=0.0..4.0", "drop=0.0..1.0", "width=0.0..1.0"], "goal": ["min:loss"]}
    )
    numbers = random.Random(5)
    trials = []
    for number in range(200):
        params = {"lr": numbers.uniform(0, 4), "drop": numbers.random(), "width": numbers.random()}
        loss = params["lr"] + 0.5 * params["drop"] + 0.1 * params["width"]
        trials.append(
            SimpleNamespace(
                number=number, params=params, goals={"loss": loss}, state=TrialState.SUCCEEDED
            )
        )
    found = importances(spec, trials)  # type: ignore[arg-type]
    assert list(found) == ["lr", "drop", "width"]
    assert found["lr"] > 0.8
