"""A replica finds its place in whatever the service tells it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distrain_nb.cluster import Cluster, ranks, time_limit
from distrain_nb.layout import Layout, Role
from distrain_nb.worker.__main__ import _launch
from distrain_nb.worker.replica import contracts, rank_count, script
from distrain_nb.worker.replica.replica import Replica

SCRIPT_MODE = {"SM_HOSTS": '["algo-1"]', "SM_CURRENT_HOST": "algo-1"}
NOWHERE = Path("/nonexistent")

CLUSTER = Cluster(
    {
        Role.PRIMARY: ("a:2222",),
        Role.WORKERS: ("b:2222", "c:2222"),
        Role.SERVERS: ("d:2222",),
        Role.EVALUATORS: ("e:2222",),
    },
    id="x",
    job={},
)


def test_what_it_reads_is_what_the_cluster_writes() -> None:
    written = list(ranks(CLUSTER, per_replica=2, run_id="r"))
    read = []
    for role, index in CLUSTER.members():
        told = {"CLUSTER_SPEC": json.dumps(CLUSTER.cluster_spec(role, index))}
        read += Replica.read(told, NOWHERE).processes(2, "r")
    assert [r.rank for r in written] == [p.rank for p in read]
    for one, other in zip(written, read, strict=True):
        assert one.environment.items() >= other.environment.items()
        assert other.role == one.role.value


def test_sagemaker_hosts(tmp_path: Path) -> None:
    told = tmp_path / "resourceconfig.json"
    hosts = [f"algo-{n}" for n in (2, 1, 3)]
    told.write_text(json.dumps({"current_host": "algo-3", "hosts": hosts}))
    replica = Replica.read({}, told)
    assert replica == Replica("workers", 1, 2, ("algo-1:7777", "algo-2:7777", "algo-3:7777"))
    assert replica.hosts == ("algo-1", "algo-2", "algo-3")
    last = replica.processes(4, "r")[-1].environment
    assert (last["RANK"], last["WORLD_SIZE"], last["MASTER_ADDR"]) == ("11", "12", "algo-1")
    told.write_text(json.dumps({"current_host": "algo-1", "hosts": hosts}))
    assert Replica.read({}, told).role == "primary"


def test_alone_it_is_the_primary() -> None:
    assert Replica.read({}, NOWHERE) == Replica("primary", 0, 0, ("127.0.0.1:${PORT_0}",))


def test_in_script_mode_each_host_knows_where_the_primary_listens() -> None:
    from distrain_nb.worker.replica.script import _spec

    hosts = json.dumps(["algo-1", "algo-2"])
    spec = _spec({"SM_HOSTS": hosts, "SM_CURRENT_HOST": "algo-2"})
    found = {name: spec.environment[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")}
    assert found == {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "algo-1"}
    assert spec.environment["MASTER_PORT"] == "7777"
    launched = _spec({"SM_HOSTS": hosts, "SM_CURRENT_HOST": "algo-2", "RANK": "3"})
    assert not launched.environment


def test_a_replica_is_told_when_its_program_is_to_save(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout.from_line("--on vertex --workers 1 --timeout 2h --signal-before 1m")
    assert time_limit(Layout.from_line("--on vertex --workers 1 --timeout 2h")) == {}
    for name, text in time_limit(layout).items():
        monkeypatch.setenv(name, text)
    for launch in (_launch(Replica.read({}, NOWHERE)), script._launch(SCRIPT_MODE)):
        assert (launch.timeout, launch.signal_before) == (7200.0, 60.0)


def test_tf_config_as_the_containers_of_aws_set_it() -> None:
    """https://github.com/aws/sagemaker-tensorflow-training-toolkit, `training.py`"""
    hosts = ["algo-1", "algo-2"]
    cluster = {
        "master": ["algo-1:2222"],
        "ps": ["algo-1:2223", "algo-2:2223"],
        "worker": ["algo-2:2222"],
    }
    for number, serves, task in (
        (0, False, {"index": 0, "type": "master"}),
        (1, False, {"index": 0, "type": "worker"}),
        (1, True, {"index": 1, "type": "ps"}),
    ):
        told = contracts.parameter_servers(hosts, number, "master", serves)
        assert told == {"cluster": cluster, "environment": "cloud", "task": task}
    alone = contracts.parameter_servers(hosts[:1], 0, "chief")
    assert alone["cluster"] == {"chief": ["algo-1:2222"]}
    assert contracts.mirrored(hosts, 1) == {
        "cluster": {"worker": ["algo-1:8890", "algo-2:8890"]},
        "environment": "cloud",
        "task": {"index": 1, "type": "worker"},
    }


def test_ranks_by_machine_type() -> None:
    assert rank_count.per_replica("3", "any") == 3
    by_type = "n1-standard-4=2,a2-highgpu-4g=4"
    assert rank_count.per_replica(by_type, "a2-highgpu-4g") == 4
    assert rank_count.per_replica(by_type, "another") == 2  # never more than there are devices
