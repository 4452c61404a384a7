"""The request of a study: `CreateHyperParameterTuningJob`."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api, log_metrics, study
from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.errors import OptionError
from distrain_nb.places.sagemaker.names import ACCOUNT, IMAGE, RUN
from distrain_nb.places.sagemaker.stand_in.shapes import check
from distrain_nb.places.sagemaker.stand_in.tuning_checks import refuse_tuning
from distrain_nb.places.sagemaker.tuning_plan import SageMakerStudyPlan, plan_study
from distrain_nb.tuning import options

from .jobs import EVERYTHING, SCRIPT, laid, planned
from .model import refused, report

OPERATION = "CreateHyperParameterTuningJob"
STUDY = {"tune": ["lr=1e-5..1e-1:log", "layers=1..4"], "goal": "min:val/loss", "trials": "6"}
LIKELY = {RUN: "r" * 32, ACCOUNT: "1" * 12, IMAGE: "image"}

SEARCHES: dict[str, dict[str, Any]] = {
    "Bayesian": {**STUDY, "parallel": "2"},
    "Random": {**STUDY, "search": "random,seed=7"},
    "Grid": {"tune": ["width=16|32", "kind=a|b"], "goal": "max:acc", "search": "grid"},
    "Hyperband": {**STUDY, "stop": "hyperband,min-steps=1,max-steps=9"},
    "early": {**STUDY, "stop": "median"},
    "end": {**STUDY, "end": "max-duration=1h,max-trials-no-progress=5"},
}


def study_of(given: dict[str, Any], layout: Any = None, **more: Any) -> SageMakerStudyPlan:
    return plan_study(planned(layout or laid(), **more), options.study(given))


@pytest.mark.parametrize("name", SEARCHES)
def test_boto3_and_the_stand_in_take_it(name: str) -> None:
    plan = study_of(SEARCHES[name])
    request: Any = fill_placeholders(plan.request, LIKELY)
    assert not plan.findings
    assert not report(request, OPERATION) and not refused(request, OPERATION)
    check(OPERATION, request)
    refuse_tuning(request)
    strategy = request["HyperParameterTuningJobConfig"]["Strategy"]
    assert strategy == (name if name in ("Random", "Grid", "Hyperband") else "Bayesian")


def test_all_that_a_job_can_have_is_in_the_definition_of_its_trials() -> None:
    given = {**EVERYTHING, "web_access": False, "check_machines": False}
    plan = study_of(STUDY, laid(spot=True, timeout="1h"), experiment="trial", options=given)
    request: Any = fill_placeholders(plan.request, LIKELY)
    assert not report(request, OPERATION)
    definition, job = (
        request["TrainingJobDefinition"],
        fill_placeholders(plan.trial.stored_request(), LIKELY),
    )
    assert definition["StaticHyperParameters"] == job["HyperParameters"]
    same = definition.keys() & job.keys() - {"OutputDataConfig", "Environment", "CheckpointConfig"}
    assert len(same - {"AlgorithmSpecification"}) == 9
    assert all(definition[name] == job[name] for name in same - {"AlgorithmSpecification"})
    assert request["Tags"] == job["Tags"]
    assert definition["OutputDataConfig"]["S3OutputPath"] == f"s3://my-bucket/distrain/{'r' * 32}"
    assert definition["CheckpointConfig"]["S3Uri"].endswith("/checkpoints/")
    environment = definition["Environment"]
    assert environment["DISTRAIN_TUNED"] == "lr,layers"
    assert environment["DISTRAIN_GOALS"] == '["val/loss"]'
    assert environment["NCCL_DEBUG"] == "***"  # filled in when it is sent
    metrics = definition["AlgorithmSpecification"]["MetricDefinitions"]
    assert [each["Name"] for each in metrics] == ["val/loss", "loss"]


def test_the_regular_expression_finds_what_log_metrics_prints_of_the_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    goal = "val/loss (mean) +1.5*[a]"
    request: Any = study_of({**STUDY, "goal": f'min:"{goal}"'}).request
    definition = request["TrainingJobDefinition"]
    (metric,) = definition["AlgorithmSpecification"]["MetricDefinitions"]
    assert metric["Name"] == goal
    monkeypatch.setenv("AIP_TENSORBOARD_LOG_DIR", str(tmp_path))
    for name in ("DISTRAIN_GOALS", "DISTRAIN_TUNED"):
        monkeypatch.setenv(name, definition["Environment"][name])
    monkeypatch.delenv("RANK", raising=False)
    values = (0.25, -1e-07, 3, 1e300, float("nan"), float("-inf"))
    for value in values:
        log_metrics({goal: value, "loss": 9.0})
    lines = [f"[rank 0] {line}" for line in capsys.readouterr().out.splitlines()]
    found = [re.search(metric["Regex"], line) for line in lines]
    assert [float(each[1]) for each in found if each] == [0.25, -1e-07, 3.0, 1e300]
    assert [bool(each) for each in found] == [True] * 4 + [False] * 2
    assert not re.search(metric["Regex"], lines[0].replace("[rank 0]", "[rank 1]"))


def test_a_definition_of_ones_own_is_what_the_service_looks_for() -> None:
    request: Any = study_of(STUDY, options={"metric": (r"val/loss=val: ([0-9.]+)",)}).request
    definition = request["TrainingJobDefinition"]
    assert definition["AlgorithmSpecification"]["MetricDefinitions"] == [
        {"Name": "val/loss", "Regex": "val: ([0-9.]+)"}
    ]
    assert "DISTRAIN_GOALS" not in definition["Environment"]


@pytest.mark.parametrize(
    ("study", "layout", "given", "says"),
    [
        (STUDY, laid(image="mine:1"), {}, "a tuning job starts an image by its entry point"),
        (STUDY, laid(), {"web_access": True}, "tuning jobs have no shell in their trials"),
        (STUDY, laid(), {"check_machines": True}, "tuning jobs don't test the machines"),
        (STUDY, laid(), {"hyperparameter": ("lr=1",)}, "--hyperparameter lr: trials give lr its"),
        ({**STUDY, "stop": "hyperband"}, laid(), {}, "how many steps a whole trial has"),
        (STUDY, laid(), {"env": tuple(f"A{n}=" for n in range(45))}, "at most 48 are allowed"),
        ({**STUDY, "goal": f"min:{'x' * 256}"}, laid(), {}, "has 256 characters"),
    ],
)
def test_what_a_tuning_job_can_t_have(study: Any, layout: Any, given: Any, says: str) -> None:
    found = study_of(study, layout, options=given).findings
    assert any(says in each.message for each in found), found


def test_what_is_wrong_with_a_trial_s_job_is_said_once() -> None:
    plan = study_of(STUDY, options={"label": (f"{'k' * 129}=v",)})
    assert [each.code for each in plan.trial.findings] == ["sagemaker.limit"]
    assert not plan.findings


def test_the_hyperband_of_a_job_with_epochs_needs_no_more() -> None:
    plan = study_of({**STUDY, "stop": "hyperband"}, options={"hyperparameter": ("epochs=9",)})
    assert not plan.findings
    refuse_tuning(fill_placeholders(plan.request, LIKELY))


def test_a_warm_start_and_autotune() -> None:
    given = {"warm_start": ("one", "two"), "autotune": True}
    request: Any = fill_placeholders(study_of(STUDY, options=given).request, LIKELY)
    check(OPERATION, request)
    refuse_tuning(request)
    assert request["Autotune"] == {"Mode": "Enabled"}
    assert request["WarmStartConfig"] == {
        "ParentHyperParameterTuningJobs": [
            {"HyperParameterTuningJobName": "one"},
            {"HyperParameterTuningJobName": "two"},
        ],
        "WarmStartType": "IdenticalDataAndAlgorithm",
    }
    request = study_of(STUDY, options={"warm_start": ("one,transfer",)}).request
    assert request["WarmStartConfig"]["WarmStartType"] == "TransferLearning"
    (found,) = study_of(STUDY, options={"warm_start": ("x" * 33,)}).findings
    assert (found.where, "at most 32 are allowed" in found.message) == ("warm_start", True)
    with pytest.raises(OptionError, match="invalid --warm-start 'one,cold': expected JOB or JOB,"):
        study_of(STUDY, options={"warm_start": ("one,cold",)})


def test_what_is_for_studies_is_said_of_a_job_alone(home: Path) -> None:
    given = {"on": "sagemaker", "rehearse": "", "workers": "ml.m5.xlarge", "autotune": True}
    found = api.prepare("x = 1", **given).findings
    assert [each.message for each in found if each.where == "autotune"] == [
        "--autotune is for a study: it does nothing without --tune"
    ]
    prepared = study.prepare("print(lr)", tune="lr=0..1", goal="min:loss", **given)
    assert not [each for each in prepared.prepared.findings if each.where == "autotune"]
    assert '"Autotune"' in str(prepared)


def test_every_study_is_another_tuning_job_with_a_short_name() -> None:
    plan = study_of(STUDY, name="My run that has a name of many words, which is long")
    one, again = plan.spec(), plan.spec()
    assert one.run == again.run and len(one.run) <= 32 and one.run.startswith("my-run-that-has-")
    assert one.request["HyperParameterTuningJobName"] == one.run
    assert RUN not in str(asdict(one))
    assert one.run != study_of(STUDY, name="My run").spec().run


def test_a_shell_would_send_it() -> None:
    text = str(study_of(STUDY, name="My run", options={"env": ("TOKEN=abc",)}))
    assert "RUN=my-run-$(date +%s)\n" in text and "abc" not in text
    assert "aws sagemaker create-hyper-parameter-tuning-job --region us-west-2" in text


def test_script_mode_has_its_own_hyperparameters_beside_those_that_vary() -> None:
    request: Any = study_of(STUDY, options=SCRIPT).request
    definition = request["TrainingJobDefinition"]
    assert "sagemaker_program" in definition["StaticHyperParameters"]
    assert "pytorch-training" in definition["AlgorithmSpecification"]["TrainingImage"]
