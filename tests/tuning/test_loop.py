"""The loop of a study's trials, by a driver whose trials are numbers: no process, no service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from distrain_nb.rehearsal.tuning_thread import TuningThread
from distrain_nb.tuning import options
from distrain_nb.tuning.engine import Ending, SearchEngine
from distrain_nb.tuning.loop import TrialLoop
from distrain_nb.tuning.reports import HypertuneReports, Row


@dataclass
class Counted:
    """A trial that ends when it has been looked at as often as it has values."""

    number: int
    end: Ending
    values: list[float]
    begin: float = 0.0
    looks: int = 0
    why: list[str] = field(default_factory=list)


class Driver(TrialLoop[Counted]):
    """`plan` says of a trial how it ends, and which values it reports."""

    def __init__(self, plan: Callable[[int], tuple[Ending, list[float]]], **spec: Any) -> None:
        study = options.study({"tune": ["x=0..9"], "goal": ["min:loss"], **spec})
        super().__init__(study, SearchEngine(study))
        self.plan, self.most_at_once, self.cancel_at = plan, 0, -1

    def begin(self, number: int, values: Mapping[str, object]) -> None:
        trial = self.trials[number] = Counted(number, *self.plan(number))
        self.most_at_once = max(self.most_at_once, len(self.active()))
        if not trial.values and trial.end == "failed":  # it can't even be started
            self.conclude(trial)

    def look(self, trial: Counted) -> bool:
        trial.looks += 1
        if trial.why:
            trial.end = "stopped" if trial.why[0] else "cancelled"
        if trial.why or trial.looks > len(trial.values):
            self.conclude(trial)
        return True

    def stop(self, trial: Counted, why: str) -> None:
        trial.why.append(why)

    def ending(self, trial: Counted) -> Ending:
        return trial.end

    def rows(self, trial: Counted) -> list[Row]:
        return [(step, 0.0, value) for step, value in enumerate(trial.values[: trial.looks])]

    def values(self, trial: Counted) -> tuple[float, ...]:
        return (trial.values[trial.looks - 2],)

    def decide(self) -> bool:
        return self.all_failed_at_first() or len(self.trials) == self.cancel_at

    def rest(self) -> bool:
        return len(self.trials) < 100


class TuningJob(TuningThread[Counted], Driver):
    """The same as a stand-in's tuning job, with the state that it has entered last."""

    def __init__(self, plan: Callable[[int], tuple[Ending, list[float]]]) -> None:
        study = options.study({"tune": ["x=0..9"], "goal": ["min:loss"], "trials": "2"})
        super().__init__("a job", study, SearchEngine(study))
        self.plan, self.most_at_once, self.cancel_at, self.state = plan, 0, -1, ""

    def finish(self, end: Literal["succeeded", "failed", "cancelled"], reason: str = "") -> None:
        self.state = end


def good(number: int) -> tuple[Ending, list[float]]:
    return "succeeded", [1.0, 0.5]


def test_it_runs_as_many_as_are_asked_for_and_no_more_at_once_than_may() -> None:
    study = Driver(good, trials="7", parallel="3")
    assert study.run_trials()
    assert list(study.endings.values()) == ["succeeded"] * 7
    assert study.most_at_once == 3
    assert not study.wants_more()


def test_a_grid_ends_when_it_has_no_more() -> None:
    study = Driver(good, tune=["x=1|2|3"], search="grid", trials="20")
    assert study.run_trials()
    assert len(study.trials) == 3 and not study.ends


@pytest.mark.parametrize(("values", "parallel", "begun"), [([], 2, 3), ([9.0], 2, 4), ([], 5, 5)])
def test_it_gives_up_when_the_first_trials_fail(
    values: list[float], parallel: int, begun: int
) -> None:
    """Also if they can't be started: it doesn't begin all that were asked for."""
    study = Driver(lambda _: ("failed", values), trials="20", parallel=str(parallel))
    assert study.run_trials()
    assert study.ends and len(study.trials) == begun


def test_failures_beside_a_success_or_a_cancelled_trial_end_nothing() -> None:
    endings: list[Ending] = ["cancelled", "failed", "failed", "failed"]
    study = Driver(lambda number: (endings[number - 1], [1.0]), trials="4")
    assert study.run_trials()
    assert not study.ends and list(study.endings.values()) == endings


def test_one_that_is_to_end_stops_its_trials_and_begins_none() -> None:
    study = Driver(lambda _: ("succeeded", [1.0] * 9), trials="20", parallel="4")
    study.cancel_at = 2
    assert study.run_trials()
    assert [trial.why for trial in study.trials.values()] == [[""], [""]]
    assert list(study.endings.values()) == ["cancelled"] * 2


def test_a_trial_that_is_worse_than_the_median_is_stopped() -> None:
    study = Driver(
        lambda number: ("succeeded", [9.0] * 50 if number == 4 else [0.5, 0.4]),
        trials="4",
        stop="median",
    )
    assert study.run_trials()
    assert [trial.number for trial in study.with_ending("stopped")] == [4]
    assert "median" in study.trials[4].why[0]
    assert study.trials[4].looks == 2


def test_one_that_is_left_to_others_begins_nothing_more() -> None:
    study = Driver(lambda _: ("succeeded", [1.0] * 9), trials="300", parallel="100")
    assert not study.run_trials()
    assert not study.endings


REPORT = '{"timestamp": %s, "trial": "1", "global_step": %s, "loss": %s}\n'


def test_reports_of_hypertune_are_kept_beyond_those_of_its_file() -> None:
    reports = HypertuneReports()
    assert reports.take((REPORT % (1, 10, 0.5)).encode())
    assert not reports.take((REPORT % (1, 10, 0.5)).encode())
    assert reports.take((REPORT % (2, 20, '"0.25"')).encode())
    assert reports.rows("loss") == [(10, 1.0, 0.5), (20, 2.0, 0.25)]
    assert reports.names == ["loss"] and reports.values("loss") == [0.5, 0.25]


def test_a_report_that_is_half_written_is_taken_when_it_is_whole() -> None:
    reports, line = HypertuneReports(), REPORT % (1, 1, 0.5) + REPORT % (2, 2, 0.25)
    assert reports.take(line[:-9].encode())
    assert reports.values("loss") == [0.5]
    assert reports.take(line.encode())
    assert reports.values("loss") == [0.5, 0.25]


def test_only_reports_without_steps_are_numbered() -> None:
    one, several = HypertuneReports(), HypertuneReports()
    one.take((REPORT % (1, 40, 0.5)).encode())
    several.take("".join(REPORT % (time, 0, time) for time in (3, 1, 2)).encode())
    assert one.rows("loss") == [(40, 1.0, 0.5)]
    assert several.rows("loss") == [(0, 1.0, 1.0), (1, 2.0, 2.0), (2, 3.0, 3.0)]


@pytest.mark.parametrize(
    "report",
    [
        b"[" * 100_000,
        b"\xff\xfe",
        b"[1]",
        REPORT.encode() % (b"1e300", b"1", b"1"),
        REPORT.encode() % (b"1", b"1e999", b"1"),
        REPORT.encode() % (b"1", b"-1", b"1"),
        REPORT.encode() % (b"1", str(1 << 63).encode(), b"1"),
        REPORT.encode() % (b"1", b"1", b'"x"'),
    ],
)
def test_what_is_no_report_is_left_out(report: bytes) -> None:
    reports = HypertuneReports()
    assert not reports.take(report)
    assert list(reports) == []


@pytest.mark.parametrize("end", ["succeeded", "failed"])
def test_a_tuning_job_ends_as_its_trials_do(end: Ending) -> None:
    job = TuningJob(lambda _: (end, [1.0]))
    job.start()
    job.join()
    assert job.state == end


def test_a_tuning_job_whose_trials_are_left_to_others_enters_no_last_state() -> None:
    job = TuningJob(lambda _: ("succeeded", [1.0] * 10_000))
    job.start()
    job.abandon()
    job.join()
    assert job.state == "" and len(job.active()) > 0
