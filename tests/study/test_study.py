"""A study on this machine, from its cell to its best trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import api, script, study
from distrain_nb.errors import CheckFailed, OptionError, RunFailed, RunNotReady, StudyNotFound
from distrain_nb.run import Store
from distrain_nb.run.disk_usage import cleaning
from distrain_nb.study import Study
from distrain_nb.study.listing import delete, studies_ended_before
from distrain_nb.worker.files.status import State
from distrain_nb.worker.machine.gpus import shares
from tests.conftest import eventually
from tests.study.documents import CLUSTER_SPEC, PRINTS, TF_CONFIG, cluster_spec, tf_config

pytestmark = pytest.mark.slow

QUICK = "from distrain_nb import log_metrics\nlog_metrics(loss=x)"


def test_its_trials_are_a_data_frame(bowl: Study) -> None:
    frame = bowl.trials
    assert list(frame.index) == [1, 2, 3, 4, 5, 6, 7]
    assert list(frame) == [
        "state", "x", "width", "optimizer", "momentum", "val/loss", "steps", "duration", "run",
    ]  # fmt: skip
    assert set(frame["state"]) == {"succeeded"}
    assert set(frame["steps"]) == {4}
    assert tuple(frame.loc[1, ["x", "width", "optimizer"]]) == (0.25, 16, "adam")
    assert frame["momentum"].notna().equals(frame["optimizer"] == "sgd")
    losses = (frame["x"] - 0.3) ** 2 + 0.25
    assert frame["val/loss"].to_numpy() == pytest.approx(losses.to_numpy(), abs=1e-6)
    assert frame["run"].is_unique


def test_each_trial_is_a_run_whose_values_reached_the_names_of_the_cell(bowl_home: Study) -> None:
    best = bowl_home.best
    assert best.goals["val/loss"] == bowl_home.trials["val/loss"].min()
    names = ("x", "width", "optimizer", "momentum")
    assert best.results["weights"] == [best.params.get(name) for name in names]
    assert best.run.name == f"bowl-{best.number}" and best.run.experiment == "bowl"
    assert list(best.run.metrics()["step"]) == [0, 1, 2, 3]
    assert best.run.options["param"] == [f"{n}={v}" for n, v in best.params.items()]
    assert [run.id for run in bowl_home.runs] == list(bowl_home.trials["run"])


def test_its_trials_are_the_runs_of_an_experiment(bowl_home: Study) -> None:
    """A study without `--experiment` is one of its own name."""
    frame = api.runs("bowl").frame.sort_index()
    trials = bowl_home.trials.set_index("run")
    for name in ("x", "width", "optimizer"):
        assert list(frame[f"param.{name}"]) == list(trials[name])
    assert list(frame["metric.val/loss"]) == list(trials["val/loss"])
    assert list(frame["time_series_metric.val/loss"]) == list(trials["val/loss"])
    assert api.runs("wobble") == []


def test_optuna_has_the_same_trials_in_a_file_of_its_own(bowl: Study) -> None:
    found = bowl.optuna
    assert [trial.values[0] for trial in found.trials] == list(bowl.trials["val/loss"])
    assert found.best_trial.number + 1 == bowl.best.number
    assert found.trials[0].params == {"x": 0.25, "width": 16, "optimizer": "adam"}
    assert len(found.trials[1].intermediate_values) == 4


def test_more_trials_of_a_study_that_has_ended(home: Path) -> None:
    found = study.tune(QUICK, tune="x=1..3", goal="max:loss", trials=1, name="grow").wait(120)
    found.more(2)
    assert found.wait(120).trials["state"].tolist() == ["succeeded"] * 3
    assert found.best.params["x"] == found.trials["x"].max()
    assert [each.name for each in study.studies()] == ["grow"]
    assert study.find_study("grow").id == study.find_study(1).id == 1
    with pytest.raises(StudyNotFound, match=r"no study 'gro'; did you mean grow\?"):
        study.find_study("gro")
    assert _cleaned(older_than=1) == []
    assert _cleaned(older_than=0)[-1] == "study 1 (grow)"
    strangers = Store().add("", "local", "grow", "--on local")
    delete(found)
    assert study.studies() == [] and not found.folder.exists()
    assert [record.id for record in Store().all()] == [strangers.id]


def _cleaned(older_than: float) -> list[str]:
    return [
        part.title
        for part in cleaning(older_than, studies_ended_before).parts
        if "study" in part.title
    ]


def test_a_grid_has_each_value_once(home: Path) -> None:
    tuned = ["x=1..2", "kind=a|b", "y[kind=b]=5|6"]
    found = study.tune(QUICK, tune=tuned[:1], goal="min:loss", trials=9, search="grid").wait(120)
    assert found.trials["x"].tolist() == [1, 2]
    assert found.best.params == {"x": 1}


def test_a_study_is_stopped_with_its_trials(home: Path) -> None:
    cell = f"{QUICK}\nimport time\ntime.sleep(600)"
    found = study.tune(cell, tune="x=1..3", goal="max:loss", trials=5, parallel=2)
    assert eventually(lambda: [t.steps for t in found.all_trials()] == [1, 1])
    found.stop(1)
    assert eventually(lambda: found[1].state.final and len(found.all_trials()) == 3)
    with pytest.raises(RunNotReady, match="study 1 is running: stop it first"):
        delete(found)
    assert (str(found[1].state), found[1].why) == ("stopped", "somebody stopped it")
    found.cancel()
    assert eventually(lambda: found.state.final)
    assert found.state is State.CANCELLED
    assert all(trial.state.final and trial.run.state.final for trial in found.all_trials())
    assert len(found.all_trials()) == 3


def test_trials_that_fail_and_never_report_the_goal(home: Path) -> None:
    found = study.tune("assert x < 0, x", tune="x=1..3", goal="min:loss", trials=9)
    with pytest.raises(RunFailed, match=r"failed: the first 3 trials failed: rank 0 failed: Asser"):
        found.wait(120)
    assert found.trials["state"].tolist() == ["failed"] * 3
    found = study.tune(QUICK, tune="x=1..3", goal="min:val", trials=9, max_failed=1)
    with pytest.raises(
        RunFailed, match="1 trials failed; the last: it never reported val, the goa"
    ):
        found.wait(120)
    assert "it reported loss; report it with log_metrics" in found[1].why


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tune": "lr=0..1"}, "--tune lr: the cell never reads the name lr, and no arguments"),
        ({"tune": "x=0..1", "param": "x=1"}, "--param x=1: trials give x its values, by --tune"),
        ({"tune": "x=0.5..1", "search": "grid"}, "a grid needs single values, and x is a range"),
        ({"tune": "x=0..1", "stop": "hyperband"}, "this machine has no hyperband stopping"),
        ({"tune": "x=0..1", "end": "max-trials=3"}, "--end is not known on this machine yet"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_starts(
    home: Path, options: dict[str, str], says: str
) -> None:
    with pytest.raises((OptionError, CheckFailed)) as refused:
        study.tune(QUICK, goal="min:loss", **options)
    assert says in str(refused.value)
    assert not study.studies() and not Store().all()


def test_arguments_reach_a_program_that_parses_them_and_hypertune_reports(home: Path) -> None:
    cell = """\
import argparse, hypertune, os
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--layers", type=int)
given = parser.parse_args()
report = hypertune.HyperTune().report_hyperparameter_tuning_metric
for step in range(1, 4):
    report("accuracy", given.lr * step + given.layers, step)
trial = os.environ["CLOUD_ML_TRIAL_ID"]
"""
    tuned = ["lr=0.1|0.2", "layers=2..3"]
    found = study.tune(
        cell, tune=tuned, goal="max:accuracy", trials=4, search="grid", parallel=2, result="trial"
    ).wait(120)
    assert found.best.params == {"lr": 0.2, "layers": 3}
    assert found.best.goals == {"accuracy": pytest.approx(3.6)}
    assert [each.steps for each in found.all_trials()] == [3] * 4
    assert [each.results["trial"] for each in found.all_trials()] == ["1", "2", "3", "4"]


def test_a_script_gets_its_trials_values_behind_its_own_arguments(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(
        "import sys\nfrom distrain_nb import log_metrics\n"
        "said = sys.argv[1:]\nlog_metrics(loss=float(said[-1].partition('=')[2]))\n"
    )
    code = script("train.py", "--epochs", 3)
    tuned = {"tune": "lr=0.2|0.1", "goal": "min:loss", "search": "grid"}
    found = study.tune(code, **tuned, trials=2, result="said").wait(120)
    assert found.best.params == {"lr": 0.1}
    assert found.best.results["said"] == ["--epochs", "3", "--lr=0.1"]


def test_a_trial_prints_its_place_as_the_document_does(home: Path) -> None:
    """Of a chief, two workers and a parameter server, the first worker."""
    found = study.tune(
        PRINTS, tune="lr=0.1..0.2", goal="min:loss", trials=1, workers=2, servers=1
    ).wait(120)
    log = found[1].run.logs(1)
    assert tf_config(log) == TF_CONFIG
    assert cluster_spec(log) == CLUSTER_SPEC


@pytest.mark.stands_for("a study")
def test_a_trial_that_is_worse_than_the_median_is_stopped_early(home: Path) -> None:
    cell = """\
import time
from distrain_nb import log_metrics
for step in range(6000 if x > 5 else 5):
    log_metrics(step=step, loss=x)
    time.sleep(0.05)
"""
    initial = ["x=1", "x=2", "x=3", "x=9"]
    found = study.tune(
        cell, tune="x=0.0..9.0", goal="min:loss", stop="median", initial=initial, trials=4
    ).wait(240)
    assert found.trials["state"].tolist() == ["succeeded"] * 3 + ["stopped"]
    assert "is worse than the median of the others' averages, 2" in found[4].why
    assert found[4].steps < 600 and found[4].run.state is State.CANCELLED
    assert str(found.optuna.trials[3].state) in ("TrialState.PRUNED", "7", "2", "State.PRUNED")


def test_shares_of_gpus() -> None:
    gpus = [str(number) for number in range(8)]
    assert shares(gpus, 2) == ("0,1,2,3", "4,5,6,7")
    assert shares(gpus, 3) == ("0,1", "2,3", "4,5")
    assert shares(["0", "1"], 3) == ("0", "1", "0")
    assert shares(gpus, 1) == shares([], 4) == ()


def test_trials_at_once_share_the_cpus_and_gpus(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    from distrain_nb.study.starting import prepare

    prepared = prepare(f"import torch\n{QUICK}", tune="x=1..3", goal="min:loss", parallel=2)
    assert prepared.devices == ("4,5", "6,7")
    assert prepared.prepared.plan.ranks_per_replica == 2
    environment = prepared.prepared.plan.launch.processes[0].environment
    assert environment["OMP_NUM_THREADS"] == "2"
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in environment
    more = prepare(f"import jax\n{QUICK}", tune="x=1..3", goal="min:loss", parallel=8)
    assert more.devices == ("4", "5", "6", "7") * 2
    environment = more.prepared.plan.launch.processes[0].environment
    assert environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.38"


def test_a_name_that_the_cell_sets_itself_is_named_with_its_line(home: Path) -> None:
    with pytest.raises(OptionError, match=r"the cell sets lr itself, by `lr = 0.1`: leave that"):
        study.tune("lr = 0.1\nprint(lr)", tune="lr=0..1", goal="min:val", trials=1)
