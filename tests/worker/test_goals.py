"""Goals reach the service that tunes as `cloudml-hypertune` reports them."""

from __future__ import annotations

import json
from pathlib import Path

import hypertune
import pytest

from distrain_nb.worker.metrics import goals
from distrain_nb.worker.metrics.writer import log_metrics


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIP_TENSORBOARD_LOG_DIR", str(tmp_path / "events"))
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "4")
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(tmp_path / "hypertune" / "output.metrics"))
    monkeypatch.setenv("DISTRAIN_GOALS", '["val/loss"]')
    goals._goal_reports.clear()
    return tmp_path / "hypertune" / "output.metrics"


def lines(path: Path) -> list[dict[str, object]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{**each, "timestamp": 0.0} for each in found]


def test_a_goal_is_reported_as_hypertune_does(trial: Path) -> None:
    log_metrics({"val/loss": 0.5, "accuracy": 0.9}, step=3)
    log_metrics({"val/loss": 0.25}, step=4)
    ours = trial.read_text()
    reporter = hypertune.HyperTune()
    reporter.report_hyperparameter_tuning_metric("val/loss", 0.5, 3)
    reporter.report_hyperparameter_tuning_metric("val/loss", 0.25, 4)
    theirs = lines(trial)
    trial.write_text(ours)
    assert lines(trial) == theirs
    assert list(json.loads(ours.splitlines()[0])) == sorted(theirs[0])


def test_only_the_last_reports_are_kept(trial: Path) -> None:
    for step in range(103):
        log_metrics({"val/loss": step}, step=step)
    assert [line["global_step"] for line in lines(trial)] == [str(n) for n in range(3, 103)]


def test_nothing_is_reported_by_other_ranks_or_outside_of_a_trial(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    log_metrics({"val/loss": 1}, step=1, every_rank=True)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("CLOUD_ML_TRIAL_ID")
    log_metrics({"val/loss": 1}, step=1)
    assert not trial.exists()


def test_a_goal_is_printed_where_sagemaker_reads_the_log(
    trial: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISTRAIN_TUNED", "lr,layers")
    log_metrics({"val/loss": 0.1234567891, "lr": 0.5}, step=3)
    log_metrics({"val/loss": 1 / 3}, step=4, every_rank=True)
    log_metrics(lr=0.5)
    monkeypatch.setenv("RANK", "1")
    log_metrics({"val/loss": 9.0}, step=5, every_rank=True)
    log_metrics({"val/loss": 9.0}, step=5)
    assert (
        capsys.readouterr().out
        == "step 3  val/loss 0.1234567891\nstep 4  val/loss 0.3333333333333333\n"
    )
    assert not trial.exists()
