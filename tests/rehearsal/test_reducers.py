"""Which replicas stand for a Reduction Server in a rehearsal, and what all are told of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.cloud.aiplatform_v1 import types

from distrain_nb.layout import Role
from distrain_nb.places.vertex.stand_in.replicas import job_cluster, left_out, members, replica
from distrain_nb.worker.replica.replica import Replica

JOB = "projects/p/locations/us-central1/customJobs/1"
OURS = {"DISTRAIN_RUN": "run-1"}


def spec(count: int = 2, **variables: str) -> types.CustomJobSpec:
    """A primary, two workers and a Reduction Server."""
    env = [{"name": name, "value": value} for name, value in variables.items()]
    train = {"image_uri": "an/image:1", "command": ["train"], "env": env}
    server = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    pools = [
        {"replica_count": 1, "container_spec": train},
        {"replica_count": 2, "container_spec": train},
        {"replica_count": count, "container_spec": {"image_uri": server}},
    ]
    return types.CustomJobSpec({"worker_pool_specs": pools})


def told(wanted: types.CustomJobSpec) -> dict[str, Any]:
    """What each replica is given, by its task."""
    there = members(JOB, wanted)
    cluster = job_cluster(JOB, wanted, {member.host: f"{member.host}:2222" for member in there})
    return {member.task: replica(JOB, wanted, member, cluster, {}, {}) for member in there}


@pytest.mark.brief
def test_reducers_run_what_the_primary_runs_and_every_replica_knows_them() -> None:
    given = told(spec(**OURS))
    assert list(given) == [
        "workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool2-0", "workerpool2-1",
    ]  # fmt: skip
    reducer = given["workerpool2-1"]
    assert (reducer.image, reducer.command) == ("an/image:1", ("train",))
    addresses = {each.environment["DISTRAIN_REDUCERS"] for each in given.values()}
    names = [given[f"workerpool2-{n}"].name for n in (0, 1)]
    assert addresses == {",".join(f"{name}:2222" for name in names)}
    for each in given.values():
        there = json.loads(each.environment["CLUSTER_SPEC"])["cluster"]
        assert there["workerpool2"] == [f"{name}:2222" for name in names]
        assert json.loads(each.environment["TF_CONFIG"])["cluster"]["ps"] == there["workerpool2"]


@pytest.mark.brief
def test_a_replica_of_that_pool_is_a_reducer_where_there_are_some() -> None:
    given = told(spec(**OURS))
    found = [Replica.read(each.environment) for each in given.values()]
    assert [each.role for each in found] == ["primary", *["workers"] * 2, *["reducers"] * 2]
    assert [process.label for process in found[4].processes(1, "run-1")] == ["reducer 1"]
    environment = {**given["workerpool2-1"].environment, "DISTRAIN_REDUCERS": ""}
    assert Replica.read(environment).role == "servers"


@pytest.mark.brief
def test_without_ranks_that_our_worker_forks_the_pool_is_left_out() -> None:
    for variables in ({}, {**OURS, "DISTRAIN_LAUNCHER": "mpi"}):
        wanted = spec(**variables)
        assert left_out(wanted.worker_pool_specs[2], wanted)
        assert {member.role for member in members(JOB, wanted)} == {Role.PRIMARY, Role.WORKERS}
        given = told(wanted)["workerpool0-0"]
        assert "workerpool2" not in given.environment["CLUSTER_SPEC"]
        assert "DISTRAIN_REDUCERS" not in given.environment
