"""Layouts as objects of Kubernetes, checked by the schemas of their definitions.

The schemas in `crds/` are those of the projects, without descriptions and without what no text of
ours can have; each file names its source.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from distrain_nb.api import prepare
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports, read_any
from distrain_nb.worker.replica.replica import Replica

SCHEMAS = Path(__file__).with_name("crds")
LAYOUTS = {
    "gpus": Layout.of(
        "vertex",
        primary="n1-highmem-96+8*V100",
        workers="3*n1-highmem-96+8*V100",
        spot=True,
        region="us-central1",
        launcher="torchrun",
        ranks_per_replica=8,
        timeout="2h",
    ),
    "tpus": Layout.of("vertex", primary="ct5lp-hightpu-4t,topology=2x4"),
    "roles": Layout.of(
        "vertex",
        primary="n1-standard-4",
        workers="2*n1-standard-8",
        servers="n1-highmem-2",
        evaluators="n1-standard-4",
        image="example.org/a:1",
    ),
    "aws": Layout.of("sagemaker", workers="2*ml.p4d.24xlarge", launcher="mpi"),
    "neuron": Layout.of("sagemaker", workers="ml.trn1.32xlarge", spot=True),
}  # fmt: skip


def strict(schema: Any) -> Any:
    """The schema, without fields that it doesn't name: Kubernetes drops them without a word."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: strict(value) for key, value in schema.items()}
    open_ = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    named = schema.get("type") == "object" and "properties" in schema
    return {**inner, "additionalProperties": False} if named and not open_ else inner


def object_of(form: str, text: str) -> dict[str, Any]:
    """The object in a text, which its definition allows."""
    definition = json.loads((SCHEMAS / f"{form}.json").read_text())
    document: dict[str, Any] = yaml.safe_load(text)
    about = document["metadata"]
    assert (document["kind"], document["apiVersion"]) == (
        definition["kind"], definition["apiVersion"],
    )  # fmt: skip
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", about["name"])
    schema = strict(definition["schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    jsonschema.validate(document, schema)
    return document


def replicas(variables: list[dict[str, Any]], count: int) -> list[Replica]:
    """What each of a job's pods is told, as our worker reads it."""
    (spec,) = [item["value"] for item in variables if item["name"] == "CLUSTER_SPEC"]
    assert variables[0]["name"] == "DISTRAIN_INDEX"  # what is told later can't be referred to
    texts = [spec.replace("$(DISTRAIN_INDEX)", str(index)) for index in range(count)]
    return [Replica.read({"CLUSTER_SPEC": text}) for text in texts]


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("form", ["jobset", "trainjob"])
def test_it_is_allowed_and_read_back(name: str, form: str) -> None:
    layout = LAYOUTS[name]
    text = exports(layout)[form]
    object_of(form, text)
    found = read_any(text)
    assert found.left_out == ()
    if form == "jobset" or name != "roles":
        assert found.layout == layout
    else:  # a TrainJob's nodes are of one kind
        assert str(found.layout) == (
            "--on vertex --primary n1-standard-4 --workers 2*n1-standard-4 --image example.org/a:1"
        )


def test_replicas_find_each_other() -> None:
    layout = LAYOUTS["gpus"]
    job = object_of("jobset", exports(layout)["jobset"])
    members = []
    for part in job["spec"]["replicatedJobs"]:
        pod = part["template"]["spec"]
        (container,) = pod["template"]["spec"]["containers"]
        assert container["resources"] == {"limits": {"nvidia.com/gpu": 8}}
        members += replicas(container["env"], pod["completions"])
    hosts = ["train-primary-0-0.train", *(f"train-workers-0-{n}.train" for n in range(3))]
    assert [member.group for member in members] == [0, 1, 2, 3]
    assert {member.hosts for member in members} == {tuple(hosts)}

    trainer = object_of("trainjob", exports(layout)["trainjob"])["spec"]["trainer"]
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (4, 8)
    members = replicas(trainer["env"], 4)
    assert [member.group for member in members] == [0, 1, 2, 3]
    assert members[3].hosts == tuple(f"train-node-0-{n}.train" for n in range(4))
    assert {p.rank for m in members for p in m.processes(8, "run")} == set(range(32))


def test_what_others_write_is_read_and_what_has_no_place_is_named() -> None:
    found = read_any("""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: mnist, namespace: team}
spec:
  runtimeRef: {name: deepspeed-distributed}
  trainer:
    image: example.org/mnist:2
    command: [torchrun, train.py]
    numNodes: 2
    resourcesPerNode: {limits: {nvidia.com/gpu: 4, memory: 64Gi}}
    env: [{name: LR, value: "0.1"}]
""")
    assert str(found.layout) == (
        "--on vertex --primary ?+4*? --workers ?+4*? --image example.org/mnist:2"
    )
    assert set(found.left_out) == {
        "metadata.namespace", "spec.runtimeRef.name", "spec.trainer.command",
        "spec.trainer.env[0].name", "spec.trainer.env[0].value",
        "spec.trainer.resourcesPerNode.limits.memory",
    }  # fmt: skip
    with pytest.raises(OptionError, match=r"invalid spec\.replicatedJobs\[0\]\.name 'driver'"):
        read_any("kind: JobSet\nspec: {replicatedJobs: [{name: driver}]}")
    with pytest.raises(OptionError, match=r"invalid spec\.replicatedJobs 'x': expected a list"):
        read_any("kind: JobSet\nspec: {replicatedJobs: x}")


def test_a_dry_run_of_a_cell_can_be_applied() -> None:
    options = {
        "project": "p",
        "bucket": "b",
        "repository": "example.org/team",
        "base": "python:3.11",
    }
    prepared = prepare(
        "import torch", on="vertex", primary="n1-standard-8+4*T4", region="us-central1",
        name="Mnist 1", dry_run=True, export="trainjob", **options,
    )  # fmt: skip
    job = object_of("trainjob", str(prepared))
    assert job["metadata"]["name"] == "mnist-1"
    trainer = job["spec"]["trainer"]
    assert trainer["image"].startswith("example.org/team/")
    assert trainer["numProcPerNode"] == 4
    assert {"name": "DISTRAIN_LAUNCHER", "value": "torchrun"} in trainer["env"]
