"""What an actor of a replica gives its driver, without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from distrain_nb.places.ray.replica import ReplicaActor


@pytest.fixture
def actor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReplicaActor:
    """The second replica's, on a node that shares no folder."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "start.py").write_text("")
    return ReplicaActor(1, "", '{"DISTRAIN_ATTEMPT": "2"}')


def put(actor: ReplicaActor, name: str, text: str) -> None:
    path = actor._folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def test_files_that_grow_come_from_where_they_ended(actor: ReplicaActor) -> None:
    log, status = "replicas/1.2/log.tsv", "replicas/1.2/status.json"
    put(actor, log, "one\n")
    put(actor, status, "{}")
    put(actor, "output/models/large", "is not fetched")
    assert actor.pull() == ([(log, 0, b"one\n"), (status, -1, b"{}")], None)
    put(actor, log, "two\n")
    assert actor.pull() == ([(log, 4, b"two\n")], None)
    assert actor.pull() == ([], None)


def test_an_order_is_read_until_it_is_answered(actor: ReplicaActor) -> None:
    place = "ordered/7/replicas/1"
    put(actor, f"{place}/log.tsv", "one\n")
    put(actor, "ordered/7/replicas/0/log.tsv", "of another one\n")
    assert actor.pull()[0] == [(f"{place}/log.tsv", 0, b"one\n")]
    put(actor, f"{place}/log.tsv", "two\n")
    put(actor, f"{place}/answer.json", "{}")
    last = [(f"{place}/log.tsv", 4, b"two\n"), (f"{place}/answer.json", -1, b"{}")]
    assert actor.pull()[0] == last
    put(actor, f"{place}/log.tsv", "later\n")
    assert actor.pull()[0] == []


def test_a_replica_whose_files_were_all_brought_leaves_nothing(actor: ReplicaActor) -> None:
    put(actor, "output/results/total", "1")
    assert actor.close() == ""
    assert not actor._folder.exists()
