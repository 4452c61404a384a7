"""`CLUSTER_SPEC`, `TF_CONFIG` and the ranks' variables, against the documentation's examples."""

from __future__ import annotations

import json

from distrain_nb.cluster import Cluster, ranks
from distrain_nb.layout import Role

EXAMPLE = Cluster(
    {
        Role.PRIMARY: ("cmle-training-workerpool0-ab-0:2222",),
        Role.WORKERS: tuple(f"cmle-training-workerpool1-ab-{n}:2222" for n in range(2)),
        Role.SERVERS: tuple(f"cmle-training-workerpool2-ab-{n}:2222" for n in range(2)),
        Role.EVALUATORS: tuple(f"cmle-training-workerpool3-ab-{n}:2222" for n in range(3)),
    },
    id="ab",
    job={"workerPoolSpecs": []},
    trial="TRIAL_ID",
)


def test_cluster_spec_is_the_documents_example_key_for_key() -> None:
    documented = """
    {"cluster": {
        "workerpool0": ["cmle-training-workerpool0-ab-0:2222"],
        "workerpool1": ["cmle-training-workerpool1-ab-0:2222",
                        "cmle-training-workerpool1-ab-1:2222"],
        "workerpool2": ["cmle-training-workerpool2-ab-0:2222",
                        "cmle-training-workerpool2-ab-1:2222"],
        "workerpool3": ["cmle-training-workerpool3-ab-0:2222",
                        "cmle-training-workerpool3-ab-1:2222",
                        "cmle-training-workerpool3-ab-2:2222"]},
     "environment": "cloud",
     "task": {"type": "workerpool0", "index": 0, "trial": "TRIAL_ID"},
     "job": {"workerPoolSpecs": []}}
    """
    told = json.dumps(EXAMPLE.cluster_spec(Role.PRIMARY, 0))
    assert told == json.dumps(json.loads(documented)), "the order of the keys counts too"


def test_tf_config_is_the_documents_example_key_for_key() -> None:
    cluster = Cluster(
        {
            Role.PRIMARY: ("training-workerpool0-x-0:2222",),
            Role.WORKERS: ("training-workerpool1-x-0:2222", "training-workerpool1-x-1:2222"),
            Role.SERVERS: ("training-workerpool2-x-0:2222",),
            Role.EVALUATORS: ("training-workerpool3-x-0:2222",),
        },
        id="y",
        job={},
        trial="1",
    )
    documented = """
    {"cluster": {
        "chief": ["training-workerpool0-x-0:2222"],
        "ps": ["training-workerpool2-x-0:2222"],
        "worker": ["training-workerpool1-x-0:2222", "training-workerpool1-x-1:2222"]},
     "environment": "cloud",
     "job": {},
     "task": {"cloud": "y", "index": 0, "trial": "1", "type": "worker"}}
    """
    told = json.dumps(cluster.tf_config(Role.WORKERS, 0))
    assert told == json.dumps(json.loads(documented))
    evaluator = cluster.tf_config(Role.EVALUATORS, 0)
    assert evaluator is not None
    assert evaluator["task"]["type"] == "evaluator"
    assert "evaluator" not in evaluator["cluster"]


def test_a_single_replica_is_told_no_tf_config_and_no_trial() -> None:
    cluster = Cluster({Role.PRIMARY: ("127.0.0.1:1",)}, id="x", job={})
    assert cluster.tf_config(Role.PRIMARY, 0) is None
    assert "trial" not in cluster.cluster_spec(Role.PRIMARY, 0)["task"]


def test_ranks_are_what_torchrun_would_set() -> None:
    told = list(ranks(EXAMPLE, per_replica=2, run_id="x"))
    world = [rank.environment for rank in told if rank.rank is not None]
    assert [rank.label for rank in told[:6]] == [f"rank {n}" for n in range(6)]
    assert [rank.label for rank in told[6:]] == ["ps 0", "ps 1"] + [
        f"evaluator {n}" for n in (0, 1, 2)
    ]
    assert [e["RANK"] for e in world] == list("012345")
    assert [e["LOCAL_RANK"] for e in world] == list("010101")
    assert [e["GROUP_RANK"] for e in world] == list("001122")
    assert {e["WORLD_SIZE"] for e in world} == {"6"}
    assert {e["LOCAL_WORLD_SIZE"] for e in world} == {"2"}
    assert {e["MASTER_ADDR"] for e in world} == {"cmle-training-workerpool0-ab-0"}
    assert {e["MASTER_PORT"] for e in world} == {"2222"}
    assert all("RANK" not in rank.environment for rank in told if rank.rank is None)
