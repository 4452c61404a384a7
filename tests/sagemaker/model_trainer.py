"""Submits with the real SDK 3 and leaves what it sent: `PYTHONPATH=SDK python … FOLDER SCRIPT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import boto3
from moto import mock_aws
from sagemaker.core.training.configs import Compute, SourceCode
from sagemaker.train import ModelTrainer

from distrain_nb.places.sagemaker.distributed import Horovod, ParameterServers

ROLE = "arn:aws:iam::123456789012:role/training"


DISTRIBUTIONS = {
    "horovod": Horovod(process_count_per_node=2, mpi_options="-x SEEN=1"),
    "servers": ParameterServers(),
}


def main(folder: Path, script: Path) -> None:
    """For each distribution write the request, and the files of each channel by its name."""
    with mock_aws():
        for name, distribution in DISTRIBUTIONS.items():
            trainer = ModelTrainer(
                base_job_name=name,
                role=ROLE,
                training_image="123456789012.dkr.ecr.us-west-2.amazonaws.com/training:1",
                source_code=SourceCode(source_dir=str(script.parent), entry_script=script.name),
                compute=Compute(instance_type="ml.p3.2xlarge", instance_count=2),
                hyperparameters={"epochs": 60, "batch-size": 256},
                distributed=distribution,
            )
            trainer.train(wait=False, logs=False)
            _keep(name, folder / name)


def _keep(name: str, folder: Path) -> None:
    client = boto3.client("sagemaker")
    (job,) = client.list_training_jobs(NameContains=name)["TrainingJobSummaries"]
    request = client.describe_training_job(TrainingJobName=job["TrainingJobName"])
    for channel in request["InputDataConfig"]:
        uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
        _download(uri, folder / channel["ChannelName"])
    (folder / "request.json").write_text(json.dumps(request, default=str))


def _download(uri: str, folder: Path) -> None:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    for found in boto3.resource("s3").Bucket(bucket).objects.filter(Prefix=prefix):
        target = folder / found.key.removeprefix(prefix).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(found.get()["Body"].read())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
