"""Folders that one version of the package has written and another reads."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api
from distrain_nb.backends.remote.submission import Journal, Submission
from distrain_nb.errors import RunFailed, RunUnreadable
from distrain_nb.places.vertex.backend import VertexBackend
from distrain_nb.run import Run
from distrain_nb.run.pages.answers import answer
from distrain_nb.worker.files import failure, fields
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.status import Owner, Process, State, Status

WRITTEN = Path(__file__).parent / "data" / "1.0.0rc1"
SUCCEEDED, FAILED, CARRIED = 1, 2, 5


@pytest.fixture
def earlier_home(home: Path) -> Path:
    """DISTRAIN_HOME as the earliest version left it that later ones read."""
    shutil.copytree(WRITTEN, home)
    home.chmod(0o700)
    return home


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))


def test_runs_of_an_earlier_version_are_as_it_left_them(earlier_home: Path) -> None:
    night, broken, far = (api.attach(number) for number in (SUCCEEDED, FAILED, CARRIED))
    assert [run.state for run in api.runs()] == ["succeeded", "failed", "succeeded"]
    assert night.results["answer"] == {"rank": 0, "weights": [1.0, 2.0]}
    assert night.options["param"] == ["lr=0.1", "epochs=5"]
    assert list(night.metrics()["loss"]) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    assert night.logs(1).splitlines() == [
        *(f"[rank 1] step {n}" for n in range(5)),
        "[rank 1] a warning",
    ]
    with pytest.raises(RunFailed, match="rank 1 failed first: ValueError: the batch is empty"):
        broken.wait()
    word = failure.read(broken.folder, 1)
    assert word and word.summary == "ValueError: the batch is empty"
    assert Launch.read(night.folder).processes[1].environment["RANK"] == "1"
    assert far.rehearsed and far.results["total"] == 42
    assert [line.text for line in far.lines(0)] == [f"line {n}" for n in range(20)]
    assert Journal.read(far.folder).labels == ["rank 0", "service 0"]
    assert Submission.read(far.folder).processes == (Process(0, "rank 0", "primary", 0, 0),)
    service = VertexBackend().service(Submission.read(far.folder).spec, {}, far.folder)
    assert (service.spec.run, service.spec.job, service.spec.deliveries) == ("run-956bce27", "", ())
    assert answer(far, "metrics", {})


def test_fields_of_a_later_version_are_ignored_and_missing_ones_filled_in(
    earlier_home: Path,
) -> None:
    far, broken = api.attach(CARRIED).folder, api.attach(FAILED).folder
    files = [
        *(far / name for name in ("status.json", "carrier.json", "submission.json")),
        *(broken / name for name in ("launch.json", "failure-1.json", "record.json")),
    ]
    readers: tuple[Callable[[], Any], ...] = (
        *(lambda read=read: read(far) for read in (Status.read, Journal.read, Submission.read)),
        lambda: Launch.read(broken),
        lambda: failure.read(broken, 1),
        lambda: api.attach(FAILED).record,
    )
    before = [read() for read in readers]
    for file in files:
        edited(file, lambda raw: raw.update(novel={"any": ["thing"]}))
        edited(file, lambda raw: [each.update(novel=1) for each in raw.get("processes", ())])
    assert [read() for read in readers] == before
    edited(far / "status.json", lambda raw: [raw.pop(name) for name in ("progress", "note")])
    edited(far / "carrier.json", lambda raw: [raw.pop(name) for name in ("missing", "denied")])
    edited(broken / "launch.json", lambda raw: [raw.pop(name) for name in ("follows", "timeout")])
    assert [read() for read in readers] == before


def in_state(run: Run, state: str, owner: Owner | None) -> Run:
    def change(raw: dict[str, Any]) -> None:
        raw.update(state=state, phase="", times={state: time.time() - 60})
        raw.update(supervisor=owner and asdict(owner))

    edited(run.folder / "status.json", change)
    return run


def test_a_state_of_a_later_version_is_told_by_its_name(earlier_home: Path) -> None:
    run = in_state(api.attach(SUCCEEDED), "preempted", Owner.of(os.getpid()))
    assert (run.state, run.status.phase) == (State.RUNNING, "preempted")
    in_state(run, "preempted", Owner(os.getpid(), "before"))
    with pytest.raises(RunFailed, match="'preempted', which a later version of distrain-nb"):
        run.wait()
    assert answer(run, "summary", {})["final"]
    assert run.results["answer"]["rank"] == 0
    assert "preempted" in (run.folder / "status.json").read_text()


def test_what_a_later_version_says_in_another_way_is_said_to_be_its(earlier_home: Path) -> None:
    run = api.attach(SUCCEEDED)
    edited(run.folder / "status.json", lambda raw: raw.update(processes={"rank 0": 1}))
    with pytest.raises(RunUnreadable, match=r"status.json is damaged: processes is"):
        _ = run.state
    edited(run.folder / "record.json", lambda raw: raw.update(schema=99))
    with pytest.raises(RunUnreadable, match=r"a later version .*schema 99; this one reads 1"):
        _ = run.state


@pytest.mark.parametrize(
    "odd", ["", "[]", '"x"', '{"state": 1}', '{"sent": "x", "backend": 1, "x": 1}', "[" * 100_000]
)
def test_odd_files_are_named(tmp_path: Path, odd: str) -> None:
    for name, read in (
        ("status.json", Status.read),
        ("launch.json", Launch.read),
        ("carrier.json", Journal.read),
        ("submission.json", Submission.read),
    ):
        (tmp_path / name).write_text(odd)
        if name == "carrier.json" and odd == '{"state": 1}':
            assert read(tmp_path) == Journal()  # all that it has is of a later version
            continue
        with pytest.raises(fields.Damaged, match=f"{name} is damaged: "):
            read(tmp_path)
