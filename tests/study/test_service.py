"""A study that a service tunes: its trials become runs, whichever process dies when."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.backends.cost import RunCost
from distrain_nb.backends.remote import carrier, studies
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.backends.remote.plan import RemotePlan
from distrain_nb.backends.remote.service import Observed, Pace
from distrain_nb.backends.remote.studies import TuningBackend
from distrain_nb.backends.remote.submission import Journal, Spec, Submission
from distrain_nb.backends.tuning import ServiceTrial
from distrain_nb.errors import OptionError
from distrain_nb.run import Run, Store
from distrain_nb.run import run as of_runs
from distrain_nb.run.summary import summary_of as run_summary
from distrain_nb.study import Study
from distrain_nb.study import service as of_studies
from distrain_nb.study.files import StudyFile, TrialState, read_trials
from distrain_nb.study.listing import new_folder
from distrain_nb.study.service import ServiceTrials
from distrain_nb.study.summary import summary_of
from distrain_nb.tracking import begin_study, catch_up
from distrain_nb.tracking.request import pending
from distrain_nb.tracking.starting import owner
from distrain_nb.worker.files.status import State, Status, request_cancel
from distrain_nb.worker.files.tracked import Tracked
from distrain_nb.worker.metrics import writer
from tests.conftest import eventually
from tests.remote.folder_service import PACE, PROCESSES, FolderService
from tests.tracking.points import points_here, points_there

pytestmark = pytest.mark.slow

SPEC = {"tune": ["x=0..9", "kind=a|b"], "goal": ["min:loss"], "trials": "2"}
TRIALS = (1, 2)
# What keeps a study and its runs, but for what is replaced again and again while trials run.
COUNTED = ("carrier.json", "submission.json", "record.json", "1.json", "2.json")


@dataclass(frozen=True, kw_only=True)
class FolderSpec(Spec):
    folder: str = ""


class FolderTuning(FolderService):
    """A tuning job of two trials, each a job with a folder of its own."""

    def create(self, request: Mapping[str, Any]) -> str:
        with (self.folder / "requests").open("a") as file:
            file.write(json.dumps(request) + "\n")
        return "tuning/1"

    def find(self, request: Mapping[str, Any]) -> str:
        return "tuning/1" if (self.folder / "requests").exists() else ""

    def trials(self, job: str) -> Sequence[ServiceTrial]:
        return [self._trial(number) for number in TRIALS]

    def trial_spec(self, job: str, trial: ServiceTrial) -> Spec:
        folder = str(self.folder / f"trial-{trial.number}")
        return FolderSpec(region="here", run=str(trial.number), folder=folder)

    def observe(self, job: str) -> Observed:
        if (self.folder / "cancelled").exists():
            return Observed(State.CANCELLED)
        over = all(self._trial(number).state == "succeeded" for number in TRIALS)
        return Observed(State.SUCCEEDED if over else State.RUNNING, "running")

    def cancel(self, job: str) -> None:
        (self.folder / "cancelled").touch()
        for number in TRIALS:
            (self.folder / f"trial-{number}" / "cancelled").touch()

    def _trial(self, number: int) -> ServiceTrial:
        own = FolderService(self.folder / f"trial-{number}")
        values: dict[str, Any] = {"x": float(number), "kind": "a"}
        reached = int((own.folder / "reached").read_text())
        over = reached >= 3000
        state: Any = "succeeded" if over else "running"
        goals = {"loss": 10.0 * number} if over else {}
        return ServiceTrial(number, values, state, f"jobs/{number}", goals, reached)


class FolderBackend(TuningBackend[RemoteOptions, RemotePlan]):
    name, title, options = "folder", "Folders", RemoteOptions

    def plan(self, job: Any) -> Any: ...

    def plan_study(self, plan: Any, spec: Any) -> Any: ...

    def service(  # type: ignore[override]
        self, spec: Mapping[str, Any], endpoints: Mapping[str, str], folder: Path
    ) -> FolderService:
        kind = FolderTuning if spec["study"] else FolderService
        return kind(Path(spec["folder"]))


@pytest.fixture
def service(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> FolderTuning:
    for module in (carrier, studies, of_studies, of_runs):
        monkeypatch.setattr(module, "find", lambda name: FolderBackend())
    monkeypatch.setattr(Pace, "of", lambda own, endpoints: PACE)
    folder = tmp_path / "service"
    for number in TRIALS:
        (folder / f"trial-{number}" / "results").mkdir(parents=True)
        (folder / f"trial-{number}" / "results" / "index.json").write_text("{}")
        (folder / f"trial-{number}" / "reached").write_text("0")
    return FolderTuning(folder)


@pytest.fixture
def study(service: FolderTuning) -> Study:
    """As `tune` leaves it."""
    with new_folder() as (number, folder):
        pass
    (folder / "program").mkdir()
    (folder / "program" / "main.py").write_text("print('hello')")
    spec = FolderSpec(region="here", study=True, folder=str(service.folder))
    Submission("folder", asdict(spec), PROCESSES).write(folder)
    Status(State.STARTING).enter(State.STARTING, "preparing to submit").write(folder)
    made = StudyFile(number, "bowl", "key", 1e9, dict(SPEC), backend="folder")
    made.write(folder)
    return Study(folder)


def carry(study: Study) -> None:
    studies.carry_study(study.folder, ServiceTrials(study.file, study.folder))


def carry_in_a_process(study: Study, before: int = 0) -> int:
    """Gives its exit status; it is killed `before` that write of its own files or a run's first."""
    process = multiprocessing.get_context("fork").Process(target=_carry, args=(study, before))
    process.start()
    process.join()
    return process.exitcode or 0


def _carry(study: Study, before: int) -> None:
    left = [before]

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event == "os.rename" and Path(str(args[1])).name in COUNTED:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)
    carry(study)


def test_each_trial_that_the_service_lists_is_a_run_with_its_own_log_and_results(
    study: Study,
) -> None:
    carry(study)
    assert study.status.state is State.SUCCEEDED
    assert [(t.number, t.state, dict(t.goals)) for t in study.all_trials()] == [
        (1, TrialState.SUCCEEDED, {"loss": 10.0}),
        (2, TrialState.SUCCEEDED, {"loss": 20.0}),
    ]
    assert study.best.params == {"x": 1, "kind": "a"} and study.best.number == 1
    assert study.trials["loss"].tolist() == [10.0, 20.0]
    assert study.optuna.best_trial.params == {"x": 1, "kind": "a"}
    for trial in study.all_trials():
        run = trial.run
        assert (run.name, run.experiment) == (f"bowl-{trial.number}", "bowl")
        assert run.status.state is State.SUCCEEDED
        assert len(list(run.lines(rank=1))) == 1500
        assert run.options["param"] == [f"x={trial.number}", "kind=a"]
        assert (run.folder / "results" / "index.json").exists()
    assert [run.name for run in Store().all()] == ["bowl-2", "bowl-1"]


@pytest.mark.parametrize("step", ["create", "trials", "log"])
def test_a_process_that_dies_leaves_one_tuning_job_and_a_run_for_each_trial(
    study: Study, service: FolderTuning, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    kind: Any = FolderTuning if step != "log" else FolderService
    before = getattr(kind, step)

    def dies(self: Any, *given: Any, **named: Any) -> Any:
        before(self, *given, **named)
        os._exit(9)

    with monkeypatch.context() as inside:
        inside.setattr(kind, step, dies)
        assert carry_in_a_process(study) == 9
    carry(study)
    assert len((service.folder / "requests").read_text().splitlines()) == 1
    assert study.status.state is State.SUCCEEDED
    assert [run.name for run in Store().all()] == ["bowl-2", "bowl-1"]
    assert [len(list(trial.run.lines(rank=0))) for trial in study.all_trials()] == [1500, 1500]


def test_a_process_that_is_killed_before_any_write_leaves_one_tuning_job_and_a_run_each(
    study: Study, service: FolderTuning, home: Path
) -> None:
    """Of processes that find the same, each is killed one write later than the one before."""
    counts: Counter[str] = Counter()
    while carry_in_a_process(study, before := _next(counts, study)):
        assert before < 60, "it never gets through"
    assert len(counts) > 2 and counts.total() > 10
    assert len((service.folder / "requests").read_text().splitlines()) == 1
    assert study.status.state is State.SUCCEEDED
    assert sorted(run.name for run in Store().all()) == ["bowl-1", "bowl-2"]
    assert [t.state for t in study.all_trials()] == [TrialState.SUCCEEDED] * 2
    assert [len(list(trial.run.lines(rank=0))) for trial in study.all_trials()] == [1500, 1500]


def _next(counts: Counter[str], study: Study) -> int:
    """The write before which the next process is killed: what it finds is how far the study has
    been carried, and which files its trials' runs have."""
    runs = [[name for name in COUNTED if (run.folder / name).exists()] for run in Store().all()]
    told = [(trial.number, trial.run_id) for trial in study.all_trials()]
    journal = Journal.read(study.folder)
    found = f"{bool(journal.request)} {bool(journal.sent)} {journal.job} {told} {runs}"
    counts[found] += 1
    return counts[found]


def test_a_process_that_dies_between_a_run_and_its_number_finds_the_run_again(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as inside:
        inside.setattr(ServiceTrials, "_save", lambda self, trial: trial.run and os._exit(9))
        assert carry_in_a_process(study) == 9
    assert [run.name for run in Store().all()] == ["bowl-1"]
    carry(study)
    assert [trial.run.name for trial in study.all_trials()] == ["bowl-1", "bowl-2"]


def test_its_trials_are_nested_below_it_in_mlflow(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once each, though the process dies that has made the first trial's run."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with monkeypatch.context() as nobody_mirrors:
        nobody_mirrors.setattr("distrain_nb.tracking.starting._see_to_it", lambda kind: None)
        assert not begin_study(study.folder, "bowl", 1e9, "bowls", {"trials": "2"}, here=False)
        with monkeypatch.context() as inside:
            inside.setattr(ServiceTrials, "_save", lambda self, trial: trial.run and os._exit(9))
            assert carry_in_a_process(study) == 9
        carry(study)
    try:
        assert eventually(lambda: catch_up() or not pending(), 240)
    finally:
        if found := owner():
            os.kill(found.pid, signal.SIGKILL)
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("bowls").experiment_id])
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    assert (parent.info.run_name, parent.info.status) == ("bowl", "FINISHED")
    assert parent.data.params == {"trials": "2"}
    nested = {run.info.run_name: run for run in runs if run is not parent}
    assert sorted(nested) == ["bowl-1", "bowl-2"] and len(runs) == 3
    for number in TRIALS:
        trial = nested[f"bowl-{number}"]
        assert trial.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert trial.data.params == {"x": str(number), "kind": "a"}
        assert points_there(client, trial) == points_here(study[number].run.folder)
        assert "loss" in trial.data.metrics and trial.info.status == "FINISHED"
        assert run_in_mlflow(study[number].run) == trial.info.run_id


def run_in_mlflow(run: Run) -> str:
    tracked = Tracked.read(run.folder)
    assert tracked is not None and tracked.done
    return tracked.run


def test_a_study_that_is_stopped_ends_when_the_service_says_so(
    study: Study, service: FolderTuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No trial seems to run when the study has ended."""
    left, give_up = [], ServiceTrials.give_up

    def noted(self: ServiceTrials, why: str) -> None:
        left.append(study.state)
        give_up(self, why)

    monkeypatch.setattr(ServiceTrials, "give_up", noted)
    for number in TRIALS:
        (service.folder / f"trial-{number}" / "held").touch()
    request_cancel(study.folder)
    service.create({})
    Journal(request={}, sent=1.0).write(study.folder)
    carry(study)
    assert not left[0].final and study.state is State.CANCELLED
    assert {trial.state for trial in study.all_trials()} == {TrialState.CANCELLED}
    assert {trial.run.status.state for trial in study.all_trials()} == {State.CANCELLED}


def test_what_the_service_cannot_do_is_said(study: Study) -> None:
    carry(study)
    with pytest.raises(
        OptionError, match="Folders can't stop a single trial, only the whole study"
    ):
        study.stop(1)
    with pytest.raises(OptionError, match="Folders can't add trials to a study: start another"):
        study.more(2)


def test_a_run_that_was_deleted_is_not_made_again(study: Study, service: FolderTuning) -> None:
    carry(study)
    Store().delete(study[1].run.record)
    replaced = replace(Status.read(study.folder), state=State.RUNNING)
    replaced.write(study.folder)
    carry(study)
    assert study.status.state is State.SUCCEEDED
    assert [Run(each).name for each in Store().all()] == ["bowl-2"]


def test_a_process_that_comes_late_changes_nothing(study: Study, service: FolderTuning) -> None:
    """It may have waited for the one that has ended the study."""
    ended = Status.read(study.folder).enter(State.FAILED, "failed", error="it was refused")
    ended.write(study.folder)
    of_studies.carry(study.folder)
    assert study.status == ended and not (service.folder / "requests").exists()


def test_steps_that_only_the_run_tells_of_are_still_there_after_the_process(study: Study) -> None:
    told = [ServiceTrial(1, {"x": "3", "kind": "b"}, "succeeded", "jobs/1", {"loss": 0.5})]
    keeper = ServiceTrials(study.file, study.folder)
    for step in range(2):
        writer.append(keeper.keep(told)[1] / "tensorboard", step, {"loss": 1.0})
    keeper.keep(told)
    assert (study[1].steps, study[1].goals, study[1].run_id) == (2, {"loss": 0.5}, 1)
    before = read_trials(study.folder)
    ServiceTrials(study.file, study.folder).keep(told)
    assert read_trials(study.folder) == before and before[0].end


def test_a_trial_without_a_value_is_never_the_best(study: Study) -> None:
    """Whatever the service calls it."""
    told = [ServiceTrial(1, {"x": 3.0}, "succeeded"), ServiceTrial(2, {"x": 4.0}, "succeeded")]
    ServiceTrials(study.file, study.folder).keep([told[0], replace(told[1], goals={"loss": 9.0})])
    assert study.best.number == 2


def test_a_study_that_a_service_tunes_costs_what_its_trials_do(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distrain_nb.study.cost.find", lambda name: FolderBackend())
    RunCost("--on folder", hourly=3.6e6, currency="USD", note="no traffic").write(study.folder)
    carry(study)
    trials = study.all_trials()
    assert all(trial.paid > 0 for trial in trials)
    runs = [run_summary(trial.run).cost for trial in trials]
    total = sum(float(cost.removesuffix(" USD").replace(",", "")) for cost in runs)
    summary = summary_of(study)
    shown = float(summary.cost.removesuffix(" USD").replace(",", ""))
    assert shown == pytest.approx(total, rel=0.02)
    assert summary.line.endswith(f"{summary.cost} (no traffic)")
