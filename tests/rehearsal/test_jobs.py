"""Custom jobs on the stand-in, asked for by Google's own clients and run under Docker."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions

from distrain_nb.rehearsal import engine
from tests.image.services.docker import Docker

from .conftest import BUCKET, PARENT, Cloud, assert_unlisted, pool

HELLO = """\
import os, pathlib, sys
print("hello", os.environ["AIP_MODEL_DIR"])
print("CLUSTER_SPEC", os.environ["CLUSTER_SPEC"])
print("TF_CONFIG" in os.environ)
print("trouble", file=sys.stderr)
folder = pathlib.Path(os.environ["AIP_MODEL_DIR"])
(folder / "weights.txt").write_text("1 2 3")
"""

TWO = """\
import json, os, socket
spec = json.loads(os.environ["CLUSTER_SPEC"])
task = spec["task"]
host, port = spec["cluster"]["workerpool0"][0].split(":")
if task["type"] == "workerpool0":
    with socket.create_server(("", int(port))) as server:
        friend, peer = server.accept()
        own = socket.gethostbyname(host)
        print("primary heard:", friend.recv(100).decode(), peer[0] != own)
else:
    while True:
        try:
            friend = socket.create_connection((host, int(port)))
            break
        except OSError:
            pass
    friend.sendall(b"worker %d is here" % task["index"])
    print("worker spoke", "TF_CONFIG" in os.environ, flush=True)
"""


@pytest.mark.stands_for("a container engine")
def test_one_replica(cloud: Cloud) -> None:
    job = cloud.wait(cloud.submit(pool(cloud.image(HELLO))).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    assert job.create_time <= job.start_time <= job.end_time
    said = cloud.said(job.name, "workerpool0-0")
    assert f"[rank 0] hello /gcs/{BUCKET}/out/model/" in said
    assert "[rank 0] trouble" in said
    assert "[rank 0] False" in said
    told = next(x for x in said if "CLUSTER_SPEC" in x).partition("CLUSTER_SPEC ")[2]
    spec = json.loads(told)
    (address,) = spec["cluster"]["workerpool0"]
    assert address.startswith("cmle-training-workerpool0-") and address.endswith("-0:2222")
    assert cloud.bucket.blob("out/model/weights.txt").download_as_bytes() == b"1 2 3"


LINKS = """
import time
from pathlib import Path
out, outside = Path("/gcs/{bucket}/links"), Path("{outside}")
out.mkdir(parents=True)
(out / "folder").symlink_to(outside)
(out / "file").symlink_to(outside / "secret")
print("linked", flush=True)
while not (out / "last").exists():
    time.sleep(0.1)
print("sees", (out / "file").exists(), (out / "folder").exists())
"""


def test_links_that_a_container_makes_lead_nowhere_on_the_host(
    cloud: Cloud, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("of the host")
    name = cloud.submit(pool(cloud.image(LINKS.format(bucket=BUCKET, outside=tmp_path)))).name
    cloud.wait_for(name, "workerpool0-0", "linked")
    for blob in ("links/folder/planted", "links/last"):
        cloud.bucket.blob(blob).upload_from_string("planted")
    job = cloud.wait(name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    assert "[rank 0] sees False False" in cloud.said(name, "workerpool0-0")
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    kept = {blob.name: blob.download_as_bytes() for blob in cloud.bucket.list_blobs(prefix="links")}
    assert b"of the host" not in kept.values() and "links/file" not in kept


def test_what_a_killed_rehearsal_left_is_removed(cloud: Cloud, docker: Docker) -> None:
    gone, here = "--label=distrain.rehearsal=999999999", f"--label=distrain.rehearsal={os.getpid()}"
    docker("network", "create", gone, "left")
    docker("network", "create", here, "in-use")
    docker("pull", "--quiet", cloud.base)
    docker("create", gone, "--name=left", cloud.base)
    found = engine.docker.find()
    assert found
    found.network("next", ()).close()
    assert docker("container", "ls", "-aq", "--filter", "name=left") == ""
    names = docker("network", "ls", "--format", "{{.Name}}").split()
    assert "left" not in names and "in-use" in names
    docker("network", "rm", "in-use")


def test_two_replicas_find_each_other(cloud: Cloud) -> None:
    image = cloud.image(TWO)
    job = cloud.wait(cloud.submit(pool(image), pool(image)).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    assert "[rank 0] primary heard: worker 0 is here True" in cloud.said(job.name, "workerpool0-0")
    assert "[rank 1] worker spoke True" in cloud.said(job.name, "workerpool1-0")


def test_values_of_variables_are_on_no_command_line(cloud: Cloud) -> None:
    assert_unlisted(cloud)


FAILING = """\
import json, os, time
if json.loads(os.environ["CLUSTER_SPEC"])["task"]["type"] == "workerpool1":
    raise ValueError("boom")
time.sleep(600)
"""


def test_a_failing_replica_fails_the_job(cloud: Cloud) -> None:
    image = cloud.image(FAILING)
    job = cloud.wait(cloud.submit(pool(image), pool(image, 2)).name)
    assert job.state.name == "JOB_STATE_FAILED"
    assert "The replica workerpool1-" in job.error.message
    assert "exited with a non-zero status of 1. To find out more" in job.error.message
    assert any("ValueError: boom" in text for _, text in cloud.log(job.name))


def test_an_image_that_is_not_there(cloud: Cloud) -> None:
    missing = f"{cloud.endpoints['registry']}/rehearsal/nothing:1"
    job = cloud.wait(cloud.submit(pool(missing)).name)
    assert job.state.name == "JOB_STATE_FAILED"
    assert job.error.message.startswith(f"Failed to pull image '{missing}'")


ENDLESS = "import time\nprint('ready')\ntime.sleep(600)"


def test_cancel_stops_every_replica(cloud: Cloud) -> None:
    image = cloud.image(ENDLESS)
    name = cloud.submit(pool(image), pool(image)).name
    for task in ("workerpool0-0", "workerpool1-0"):
        cloud.wait_for(name, task, "ready")
    assert cloud.jobs.get_custom_job(name=name).state.name == "JOB_STATE_RUNNING"
    cloud.jobs.cancel_custom_job(name=name)
    assert cloud.wait(name).state.name == "JOB_STATE_CANCELLED"
    cloud.jobs.cancel_custom_job(name=name)
    assert cloud.wait(name).state.name == "JOB_STATE_CANCELLED"


def test_the_job_ends_with_its_primary(cloud: Cloud) -> None:
    source = f"import os\nif os.environ['RANK'] != '0':\n    {'; '.join(ENDLESS.splitlines())}"
    image = cloud.image(source)
    job = cloud.wait(cloud.submit(pool(image), pool(image)).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    said = cloud.said(job.name, "service")
    assert any(line.startswith("The replica workerpool1-0 was still running") for line in said)


def test_the_reduction_server_is_left_out_of_what_ranks_are_told(cloud: Cloud) -> None:
    gpu = {"accelerator_type": "NVIDIA_TESLA_V100", "accelerator_count": 8}
    spec = {"machine_spec": {"machine_type": "n1-highmem-96", **gpu}}
    source = "import os\nfor name in ('CLUSTER_SPEC', 'TF_CONFIG'): print(os.environ[name])"
    image = cloud.image(source)
    region = "us-docker.pkg.dev"
    reducers = pool(f"{region}/vertex-ai-restricted/training/reductionserver:latest", 2)
    reducers["machine_spec"] = {"machine_type": "n1-highcpu-16"}
    job = cloud.wait(cloud.submit(pool(image) | spec, pool(image) | spec, reducers).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    said = cloud.said(job.name, "workerpool0-0")
    clusters = [json.loads(line[line.index("{") :])["cluster"] for line in said]
    assert [list(cluster) for cluster in clusters] == [
        ["workerpool0", "workerpool1"],
        ["chief", "worker"],
    ]
    said = cloud.said(job.name, "service")
    assert any(line.startswith("Worker pool 2 is left out") for line in said)
    assert any(line.startswith("Worker pool 1 runs without its 8 x NVIDIA") for line in said)


def test_jobs_are_found_by_label(cloud: Cloud) -> None:
    image = f"{cloud.endpoints['registry']}/rehearsal/nothing:1"
    spec = {"worker_pool_specs": [pool(image)]}
    for label in ("one", "two"):
        job = {"display_name": "labelled", "labels": {"distrain-run": label}, "job_spec": spec}
        cloud.jobs.create_custom_job(parent=PARENT, custom_job=job)
    request = {"parent": PARENT, "filter": 'labels.distrain-run="two"'}
    (found,) = cloud.jobs.list_custom_jobs(request)
    assert found.labels["distrain-run"] == "two"
    assert cloud.wait(found.name).state.name == "JOB_STATE_FAILED"
    everything = list(cloud.jobs.list_custom_jobs({"parent": PARENT, "page_size": 1}))
    assert len(everything) >= 2 and everything[0].create_time >= everything[1].create_time
    with pytest.raises(exceptions.InvalidArgument, match="filter"):
        cloud.jobs.list_custom_jobs({"parent": PARENT, "filter": "nonsense("})
    with pytest.raises(exceptions.NotFound):
        cloud.jobs.get_custom_job(name=f"{PARENT}/customJobs/1")


def wrong(**changes: Any) -> dict[str, Any]:
    return {**pool("an/image:1"), **changes}


GPUS = {
    "machine_type": "n1-standard-4",
    "accelerator_type": "NVIDIA_TESLA_T4",
    "accelerator_count": 3,
}


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        ((), "worker_pool_specs"),
        ((wrong(replica_count=2),), "replica_count must be 1"),
        ((wrong(), wrong(replica_count=0)), "leave the whole worker pool empty"),
        ((wrong(machine_spec={}),), "machine_type is required"),
        ((wrong(machine_spec={"machine_type": "n1-standard-5"}),), "n1-standard-5"),
        ((wrong(machine_spec=GPUS),), "3"),
        ((wrong(container_spec={}),), "container_spec or a python_package_spec"),
    ],
)
def test_what_the_service_would_refuse(cloud: Cloud, pools: Any, words: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=words):
        cloud.submit(*pools)


PIPELINE = {
    "display_name": "in-a-pipeline",
    "training_task_definition": (
        "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
    ),
}


def test_a_training_pipeline_runs_its_job(cloud: Cloud) -> None:
    spec = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        "containerSpec": {"imageUri": cloud.image("print('in a pipeline')")},
    }
    asked = {**PIPELINE, "training_task_inputs": {"workerPoolSpecs": [spec]}}
    made = cloud.pipelines.create_training_pipeline(parent=PARENT, training_pipeline=asked)
    request = {"parent": PARENT, "filter": 'display_name="in-a-pipeline"'}
    (job,) = cloud.jobs.list_custom_jobs(request)
    assert cloud.wait(job.name).state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    done = cloud.pipelines.get_training_pipeline(name=made.name)
    assert done.state.name == "PIPELINE_STATE_SUCCEEDED"
    assert done.training_task_metadata["backingCustomJob"] == job.name
    assert [x.name for x in cloud.pipelines.list_training_pipelines(parent=PARENT)] == [made.name]
    assert cloud.said(job.name, "workerpool0-0") == ["[rank 0] in a pipeline"]
