"""Tuning jobs on SageMaker's stand-in, asked for by boto3; their trials run under bubblewrap."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from distrain_nb.backends.remote.service import Gone
from distrain_nb.errors import DistrainError
from distrain_nb.image import Recipe, build
from distrain_nb.places.sagemaker.client import client
from distrain_nb.places.sagemaker.stand_in.services import SageMakerStandIn
from distrain_nb.places.sagemaker.tuning_jobs import HyperParameterTuningJobs
from tests.image.services.bases import BaseImage
from tests.sagemaker.toolkit import sdk

from .conftest import program_of
from .training_jobs import BUCKET, REGION, ROLE, Aws, standing_in, troubled

pytestmark = pytest.mark.slow

# What a trial prints for ever, unless it is a good one.
CURVE = """
import sys, time
from distrain_nb import log_metrics
x = float(dict(word[2:].split("=") for word in sys.argv[1:])["x"])
for step in range(3 if x < 5 else 6000):
    log_metrics(loss=x)
    if x > 5:
        time.sleep(0.05)
"""
FAILS = "raise ValueError('no good')"
# Version 3 of AWS's SDK starts a tuning job whose second trial doesn't end.
FOLLOWS = """
import sys, time
from sagemaker.core.resources import HyperParameterTuningJob
import distrain_nb

image, role, bucket, regex = sys.argv[1:]
job = HyperParameterTuningJob.create(
    hyper_parameter_tuning_job_name="Theirs",
    hyper_parameter_tuning_job_config={
        "strategy": "Grid",
        "hyper_parameter_tuning_job_objective": {"type": "Minimize", "metric_name": "loss"},
        "resource_limits": {"max_parallel_training_jobs": 1},
        "parameter_ranges": {
            "categorical_parameter_ranges": [{"name": "x", "values": ["2", "9", "8"]}]
        },
    },
    training_job_definition={
        "algorithm_specification": {
            "training_image": image,
            "training_input_mode": "File",
            "metric_definitions": [{"name": "loss", "regex": regex}],
        },
        "role_arn": role,
        "output_data_config": {"s3_output_path": f"s3://{bucket}/out"},
        "resource_config": {
            "instance_type": "ml.m5.large", "instance_count": 1, "volume_size_in_gb": 1,
        },
        "stopping_condition": {"max_runtime_in_seconds": 3600},
        "environment": {"DISTRAIN_TUNED": "x", "DISTRAIN_GOALS": '["loss"]'},  # as the image wants
    },
)
study = distrain_nb.attach(job)
assert study.name == "Theirs" and study.requested_trials == 3, (study.name, study.requested_trials)
arn = job.hyper_parameter_tuning_job_arn
assert distrain_nb.attach(arn).id == distrain_nb.attach(job).id == study.id
while not (len(study.all_trials()) == 2 and study[2].goals and study[2].run_id):
    assert not study.state.final, study.status
    time.sleep(0.1)
first, second = study.all_trials()
assert (str(first.state), first.params, first.goals) == ("succeeded", {"x": "2"}, {"loss": 2.0})
while "loss 9" not in second.run.logs():
    time.sleep(0.1)
assert "loss 2" in first.run.wait(200).logs()
assert first.run.metrics()["loss"].tolist()[-1] == 2.0
study.cancel()
while not study.state.final:
    time.sleep(0.1)
states = [str(trial.run.state) for trial in study.all_trials()]
assert (str(study.state), states) == ("cancelled", ["succeeded", "cancelled"]), study.status
job.refresh()
assert job.hyper_parameter_tuning_job_status == "Stopped"
print("followed")
"""
REGEX = r"\[rank 0\] step [0-9]+  loss ([0-9.]+)"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def running(
    home: None, small: BaseImage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SageMakerStandIn, Aws]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('docker') / 'nobody'}")
        with standing_in(small) as both:
            yield both


@pytest.fixture(scope="module")
def aws(running: tuple[SageMakerStandIn, Aws]) -> Aws:
    return running[1]


@pytest.fixture(scope="module")
def image(aws: Aws) -> str:
    target = f"{aws.endpoints['registry']}/rehearsal/curve:1"
    return build(program_of(CURVE), Recipe(aws.base, target)).uri


def asked_for(image: str, *values: str, **config: Any) -> dict[str, Any]:
    return {
        "HyperParameterTuningJobName": f"study-{next(_numbers)}",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Grid",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxParallelTrainingJobs": 1},
            "ParameterRanges": {
                "CategoricalParameterRanges": [{"Name": "x", "Values": list(values)}]
            },
            **config,
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": image,
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "loss", "Regex": REGEX}],
            },
            "RoleArn": ROLE,
            "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
            "ResourceConfig": {
                "InstanceType": "ml.m5.large",
                "InstanceCount": 1,
                "VolumeSizeInGB": 1,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            "Environment": {"DISTRAIN_TUNED": "x", "DISTRAIN_GOALS": '["loss"]'},
        },
    }


def tune(aws: Aws, request: dict[str, Any]) -> str:
    aws.jobs.create_hyper_parameter_tuning_job(**request)
    return str(request["HyperParameterTuningJobName"])


def described(aws: Aws, name: str) -> dict[str, Any]:
    found = aws.jobs.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
    return dict(found)


def trials(aws: Aws, name: str) -> list[dict[str, Any]]:
    pages = aws.jobs.get_paginator("list_training_jobs_for_hyper_parameter_tuning_job").paginate(
        HyperParameterTuningJobName=name, SortOrder="Ascending"
    )
    return [each for page in pages for each in page["TrainingJobSummaries"]]


def ended(aws: Aws, name: str) -> dict[str, Any]:
    while True:
        told = described(aws, name)
        if told["HyperParameterTuningJobStatus"] not in ("InProgress", "Stopping"):
            return told
        time.sleep(0.1)


def test_a_grid_whose_last_trial_is_stopped_early_and_a_warm_start_from_it(
    aws: Aws, image: str
) -> None:
    request = asked_for(image, "1", "2", "3", "9", TrainingJobEarlyStoppingType="Auto")
    name = tune(aws, request)
    told = ended(aws, name)
    assert told["HyperParameterTuningJobStatus"] == "Completed", told
    assert told["TrainingJobStatusCounters"]["Completed"] == 3
    assert told["TrainingJobStatusCounters"]["Stopped"] == 1
    assert told["ObjectiveStatusCounters"] == {"Succeeded": 4, "Pending": 0, "Failed": 0}
    assert told["BestTrainingJob"]["TunedHyperParameters"] == {"x": "1"}
    found = trials(aws, name)
    values = [each["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] for each in found]
    assert values == [1.0, 2.0, 3.0, 9.0]
    assert [each["TrainingJobName"][:-8] for each in found] == [f"{name}-00{n}-" for n in "1234"]
    job = aws.describe(found[1]["TrainingJobName"])
    assert job["TuningJobArn"] == told["HyperParameterTuningJobArn"]
    assert job["HyperParameters"] == {"x": "2", "_tuning_objective_metric": "loss"}
    with pytest.raises(ClientError, match="is in status Completed"):
        aws.jobs.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
    again = {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": name}],
        "WarmStartType": "IdenticalDataAndAlgorithm",
    }
    warm = asked_for(image, "1", "2", "3", Strategy="Bayesian")  # all of which end
    warm["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = 1
    told = ended(aws, tune(aws, {**warm, "WarmStartConfig": again}))
    assert told["TrainingJobStatusCounters"]["Completed"] == 1


def test_one_that_is_stopped_stops_its_trials(aws: Aws, image: str) -> None:
    name = tune(aws, asked_for(image, "9", "8"))
    while not any("FinalHyperParameterTuningJobObjectiveMetric" in x for x in trials(aws, name)):
        time.sleep(0.1)
    aws.jobs.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
    assert ended(aws, name)["HyperParameterTuningJobStatus"] == "Stopped"
    (trial,) = trials(aws, name)
    assert trial["TrainingJobStatus"] == "Stopped"
    assert trial["ObjectiveStatus"] == "Succeeded"


def test_hyperband_ends_a_trial_that_has_all_its_steps(aws: Aws, image: str) -> None:
    strategy = {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 4}}
    request = asked_for(image, "8", "9", Strategy="Hyperband", StrategyConfig=strategy)
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = 1
    name = tune(aws, request)
    assert ended(aws, name)["HyperParameterTuningJobStatus"] == "Completed"
    assert trials(aws, name)[0]["TrainingJobStatus"] == "Stopped"


def test_one_whose_trials_all_fail_has_failed(aws: Aws) -> None:
    target = f"{aws.endpoints['registry']}/rehearsal/fails:1"
    image = build(program_of(FAILS), Recipe(aws.base, target)).uri
    name = tune(aws, asked_for(image, "1", "2"))
    told = ended(aws, name)
    assert told["HyperParameterTuningJobStatus"] == "Failed"
    assert told["FailureReason"].startswith("All training jobs failed.")
    assert told["TrainingJobStatusCounters"]["NonRetryableError"] == 2
    assert all("no good" in each["FailureReason"] for each in trials(aws, name))


def test_what_is_refused(aws: Aws, image: str, running: tuple[SageMakerStandIn, Aws]) -> None:
    with pytest.raises(ClientError, match="ResourceNotFound"):
        described(aws, "nowhere")
    request = asked_for(image, "1")
    request["HyperParameterTuningJobName"] = "x" * 33
    with pytest.raises(ClientError, match="length less than or equal to 32"):
        tune(aws, request)
    request = asked_for(image, "1")
    request["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"] = []
    with pytest.raises(ClientError, match="must be one of the metrics"):
        tune(aws, request)
    with (
        troubled(*running, "permission=iam:PassRole") as other,
        pytest.raises(ClientError, match="iam:PassRole"),
    ):
        tune(other, asked_for(image, "1"))


def test_a_lost_answer_makes_no_second_tuning_job(
    aws: Aws, image: str, running: tuple[SageMakerStandIn, Aws]
) -> None:
    with troubled(*running, "lost=1") as other:
        jobs = HyperParameterTuningJobs(client("sagemaker", REGION, other.endpoints))
        request = asked_for(image, "1")
        name = jobs.create(request)
        assert name == request["HyperParameterTuningJobName"] == jobs.find(request)
        assert jobs.create(request) == name
        other_request = asked_for(image, "1")
        other_request["HyperParameterTuningJobName"] = name
        other_request["TrainingJobDefinition"]["Environment"]["DISTRAIN_RUN"] = "another"
        assert not jobs.find(other_request)
        with pytest.raises(DistrainError, match="a tuning job with this name already exists"):
            jobs.create(other_request)
        found = other.jobs.list_hyper_parameter_tuning_jobs(NameContains=name)
        assert len(found["HyperParameterTuningJobSummaries"]) == 1
        jobs.stop(name)
        while not jobs.observe(name).state.final:
            time.sleep(0.1)
        jobs.stop(name)
        assert not jobs.find(asked_for(image, "1"))
        with pytest.raises(Gone):
            jobs.observe("nowhere")


def test_a_tuning_job_of_the_sdk_is_a_study(aws: Aws, image: str, tmp_path: Path) -> None:
    script = tmp_path / "follow.py"
    script.write_text(FOLLOWS)
    services = {"SAGEMAKER": "sagemaker", "S3": "s3", "CLOUDWATCH_LOGS": "logs"}
    environment = {
        **os.environ,
        **{f"AWS_ENDPOINT_URL_{name}": aws.endpoints[own] for name, own in services.items()},
        "PYTHONPATH": os.pathsep.join([str(sdk()), str(Path(__file__).parents[2])]),
        "DISTRAIN_HOME": str(tmp_path / "home"),
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    command = [sys.executable, str(script), image, ROLE, BUCKET, REGEX]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("followed\n")
