"""The requests of the documents' examples: every field that they give is in ours, and no other
machine, pool or schedule; what a captured program needs is added to what its pools run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from distrain_nb.layout import Layout
from distrain_nb.layout.formats import read_any
from distrain_nb.layout.formats.images import IMAGE
from distrain_nb.places.vertex.plan import VertexPlan
from distrain_nb.places.vertex.request import PACKAGE_MODULE, RUN
from tests.layout import documents
from tests.vertex.jobs import planned

N1 = {"machineType": "n1-standard-8"}
SSD = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
V100 = {
    "machineType": "n1-highmem-96",
    "acceleratorType": "NVIDIA_TESLA_V100",
    "acceleratorCount": 8,
}
K80 = {
    "machineType": "n1-highcpu-16",
    "acceleratorType": "NVIDIA_TESLA_K80",
    "acceleratorCount": 4,
}
REDUCER = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
Pools = list[dict[str, Any]]


def filled(text: str) -> str:
    """The documents' JSON with a machine and a disk where they have three dots."""
    machine, disk = '"machineSpec": {"machineType": "n1-standard-8"}', '"diskSpec": {SSD}'
    text = text.replace('"machineSpec": {...}', machine).replace('"diskSpec": {...}', disk)
    return text.replace("{SSD}", '{"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}')


def pool(machine: dict[str, Any], replicas: int, **more: Any) -> dict[str, Any]:
    return {"machineSpec": machine, "replicaCount": replicas, **more}


EXAMPLES: dict[str, tuple[str, Pools]] = {
    "a primary replica": (filled(documents.VERTEX_PRIMARY), [pool(N1, 1, diskSpec=SSD)]),
    "a primary replica and a parameter server": (
        filled(documents.VERTEX_SERVERS),
        [pool(N1, 1, diskSpec=SSD), {}, pool(N1, 1, diskSpec=SSD)],
    ),
    "Reduction Server": (
        documents.VERTEX_COMMAND,
        [pool(V100, 1), pool(V100, 4), pool({"machineType": "n1-highcpu-16"}, 16)],
    ),
    "AI Platform's config.yaml": (
        documents.CONFIG,
        [pool(K80, 1), pool(K80, 9), pool({"machineType": "n1-highmem-8"}, 3)],
    ),
    "AI Platform's flags": (
        documents.SUBMIT,
        [pool(K80, 1), pool(K80, 9), pool({"machineType": "n1-highmem-8"}, 3)],
    ),
}


def on_vertex(text: str, **options: Any) -> VertexPlan:
    layout = read_any(text).layout
    there = replace(layout, on="vertex", region=layout.region or "us-central1", tier=None)
    return planned(there, name="JOB_NAME", options=options)


def machines(plan: VertexPlan) -> Pools:
    """The pools without what they run."""
    runs = ("containerSpec", "pythonPackageSpec")
    pools = plan.request["jobSpec"]["workerPoolSpecs"]
    return [{name: value for name, value in each.items() if name not in runs} for each in pools]


@pytest.mark.parametrize(("text", "pools"), EXAMPLES.values(), ids=EXAMPLES)
def test_pools_are_those_of_the_document(text: str, pools: Pools) -> None:
    for options in ({}, {"python_package": True}):
        plan = on_vertex(text, **options)
        assert machines(plan) == pools
        assert plan.request["displayName"] == "JOB_NAME"
        assert set(plan.request["jobSpec"]) == {"workerPoolSpecs", "baseOutputDirectory"}


def test_reduction_server_runs_its_own_image_and_the_others_the_program_s() -> None:
    plan = on_vertex(documents.VERTEX_COMMAND)
    primary, workers, reducers = plan.request["jobSpec"]["workerPoolSpecs"]
    assert reducers["containerSpec"] == {"imageUri": REDUCER}
    assert primary["containerSpec"]["imageUri"] == workers["containerSpec"]["imageUri"] == IMAGE
    assert {"name": "NCCL_DEBUG", "value": "INFO"} in workers["containerSpec"]["env"]
    assert not [f for f in plan.findings if f.code == "vertex.reduction-base"]
    quiet = on_vertex(documents.VERTEX_COMMAND, env=("NCCL_DEBUG=WARN",))
    (_, workers, _) = quiet.request["jobSpec"]["workerPoolSpecs"]
    assert {"name": "NCCL_DEBUG", "value": "WARN"} in workers["containerSpec"]["env"]


def test_a_package_and_its_module_are_where_the_document_s_command_has_them() -> None:
    """`--package-path`, `--module-name` and `--job-dir` of AI Platform in Vertex AI's spelling."""
    plan = on_vertex(documents.SUBMIT, python_package=True)
    spec = plan.request["jobSpec"]
    folder = f"gs://my-bucket/distrain/{RUN}"
    assert plan.settings.region == "us-central1"
    assert spec["baseOutputDirectory"] == {"outputUriPrefix": folder}
    for each in spec["workerPoolSpecs"]:
        package = each["pythonPackageSpec"]
        assert package["packageUris"] == [f"{folder}/package/distrain_program-0.tar.gz"]
        assert package["pythonModule"] == PACKAGE_MODULE


def test_the_document_s_gpus_of_five_machines_come_from_one_line() -> None:
    """As it is written in a cell, and as it was read from the command."""
    line = Layout.of(
        "vertex", primary="n1-highmem-96+8*V100", workers="4*n1-highmem-96+8*V100",
        reducers="16*n1-highcpu-16", region="us-central1",
    )  # fmt: skip
    assert planned(line, name="JOB_NAME").request == on_vertex(documents.VERTEX_COMMAND).request
