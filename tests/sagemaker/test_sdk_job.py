"""`TrainingJob` objects of the real SDK 3 become runs, and runs give such objects."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.sagemaker.toolkit import sdk

SCRIPT = """
import time
import boto3
from sagemaker.core.resources import TrainingJob
import distrain_nb

LINE = "#quality_metric: host=algo-1, test dcg <score>=0.25"  # of moto's metric definitions
GROUP = "/aws/sagemaker/TrainingJobs"
boto3.client("sagemaker").create_training_job(
    TrainingJobName="Theirs",
    RoleArn="arn:aws:iam::123456789012:role/training",
    AlgorithmSpecification={
        "TrainingImage": "123456789012.dkr.ecr.us-west-2.amazonaws.com/training:1",
        "TrainingInputMode": "File",
    },
    OutputDataConfig={"S3OutputPath": "s3://my-bucket/out"},
    ResourceConfig={"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
    StoppingCondition={"MaxRuntimeInSeconds": 60},
)
logs, stream = boto3.client("logs"), "Theirs/algo-1-1"
try:
    logs.create_log_group(logGroupName=GROUP)
except logs.exceptions.ResourceAlreadyExistsException:
    pass
logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
events = [{"timestamp": int(time.time() * 1000), "message": LINE}]
logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)

job = TrainingJob.get("Theirs")
run = distrain_nb.attach(job)
run.wait(200)
assert run.name == "Theirs" and LINE in run.logs(), run.logs()
assert run.metrics()["test:dcg"].tolist() == [0.25]
assert distrain_nb.attach(job).id == run.id
found = run.sdk_job()
assert type(found) is TrainingJob and found.training_job_arn == job.training_job_arn
assert found.training_job_status == "Completed"
print("followed")
"""


def test_a_training_job_of_the_sdk_is_followed(aws: Mapping[str, str], tmp_path: Path) -> None:
    script = tmp_path / "follow.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(sdk()), str(Path(__file__).parents[2])]),
        "DISTRAIN_HOME": str(tmp_path / "home"),
        "AWS_ENDPOINT_URL": aws["s3"],
        "AWS_DEFAULT_REGION": "us-west-2",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("followed\n")
