"""What a run is told before it starts: a machine that may be shut down, a disk that is full."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api
from distrain_nb.config import home as our_home
from distrain_nb.magics.lines import _clean
from distrain_nb.magics.verbs import line_options
from distrain_nb.run import Store, disk_usage
from distrain_nb.worker.files.status import State, Status
from tests.places.stand_ins import metadata_server

LIMITED = {"proxy-mode": "service_account", "idle-timeout-seconds": "7200"}


def told(on: str = "local", **options: Any) -> str:
    more = {"vertex": {"primary": "n1-standard-4"}, "local": {}}
    found = api.check("print(1)", on=on, **{**more[on], **options})
    return " ".join(each.message for each in found if each.code.startswith("machine."))


def test_a_run_that_may_outlive_its_machine_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with metadata_server(LIMITED) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        asked = len(server.asked)
        assert not told() and len(server.asked) == asked, "how long it takes nobody knows"
        here = told(wait=False)
        assert "shut down after 2 h without activity" in here
        assert "a run on it ends then" in here and "--on" in here
        assert not told("vertex"), "nobody waits, and the job goes on"
        assert "without --wait it goes on" in told("vertex", wait=True)
        assert "without --wait it goes on" in told("vertex", wait=True, timeout="5h")
        assert not told("vertex", wait=True, timeout="1h")
        assert "ends then" in told("vertex", rehearse="", wait=False)
    with metadata_server({**LIMITED, "idle-timeout-seconds": "0"}) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.address)
        assert not told(wait=False), "it is never shut down"


def test_a_disk_that_is_nearly_full_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "GB are free" not in told()
    monkeypatch.setattr(disk_usage, "LITTLE", float("inf"))
    assert "%distrain clean" in told()


def run_of(days: float, name: str, state: State = State.SUCCEEDED) -> Path:
    record = Store().add(name, "local", "", "")
    Status(state, times={str(state): time.time() - days * 86400}).write(record.folder)
    (record.folder / "log.tsv").write_bytes(bytes(50_000))
    return record.folder


def clean(line: str) -> None:
    options = line_options(["clean", *line.split()])
    assert options is not None
    _clean(options)


def test_clean_names_what_it_frees_and_frees_what_it_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    layers = our_home() / "cache" / "layers"
    data = our_home() / "rehearsal" / "s3" / "mine" / "train.csv"
    for file in (layers / "a.tar.gz", data):
        file.parent.mkdir(parents=True)
        file.write_bytes(bytes(200_000))
    os.link(layers / "a.tar.gz", layers / "b.tar.gz")
    old, young = run_of(40, "old"), run_of(1, "young")
    clean("")
    shown = capsys.readouterr().out
    assert f"0.2 MB  layers of packages, which the next build downloads again: {layers}" in shown
    assert "runs, which are kept: --older-than DAYS includes old ones" in shown
    assert "nothing is deleted yet: %distrain clean --yes frees it" in shown
    assert layers.exists()
    clean("--older-than 30")
    shown = capsys.readouterr().out
    assert "run 1 (old)" in shown and "young" not in shown
    assert "%distrain clean --older-than 30 --yes" in shown
    assert old.exists()
    clean("--older-than 30 --yes")
    assert not layers.exists() and not old.exists()
    assert young.exists() and data.exists(), "data of people stay"
    assert [record.name for record in Store().all()] == ["young"]


def test_clean_leaves_what_a_run_may_use(capsys: pytest.CaptureFixture[str]) -> None:
    layers = our_home() / "cache" / "layers"
    layers.mkdir(parents=True)
    (layers / "a.tar.gz").write_bytes(bytes(200_000))
    record = Store().add("going", "local", "", "")
    clean("--yes --older-than 0")
    assert "caches are kept while runs may use them: 1 (going)" in capsys.readouterr().out
    assert layers.exists() and record.folder.exists()
