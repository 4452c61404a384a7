"""What a rehearsal says while it prepares: each step, and what is missing where it can't go on."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb import submit
from distrain_nb.program.progress import report_to
from distrain_nb.rehearsal import engine
from tests.image.services.bases import BaseImage
from tests.rehearsal.conftest import Cloud, cloud_with, pool

if TYPE_CHECKING:
    from distrain_nb.worker.files.status import Progress


def test_layers_and_replicas_are_counted(
    no_docker: None, small: BaseImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path))  # where no layer has been unpacked yet
    steps: list[Progress] = []
    with report_to(steps.append), cloud_with(small) as cloud:
        image = cloud.image("print('hello')")
        job = cloud.wait(cloud.submit(pool(image), pool(image)).name)
        assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    phases = list(dict.fromkeys(step.phase for step in steps))
    unpacking = [phase for phase in phases if phase.startswith("unpacking")]
    assert phases[0] == "loading Google's libraries"
    assert len(unpacking) > 1
    assert unpacking == [
        f"unpacking layer {n + 1} of {len(unpacking)}" for n in range(len(unpacking))
    ]
    assert phases[-2:] == ["starting replica 1 of 2", "starting replica 2 of 2"]
    last = [step for step in steps if step.phase == unpacking[0]][-1]
    assert last.done == last.total > 0


def test_a_base_out_of_reach_is_said_in_a_sentence(home: None) -> None:
    base = "127.0.0.1:9/team/base:1"
    own = {"project": "p", "bucket": "b", "region": "us-central1", "primary": "n1-standard-4"}
    run = submit("print(1)", on="vertex", rehearse="", base=base, **own)  # type: ignore[arg-type]
    while not (status := run.status).state.final:
        assert status.progress, f"nothing moves while {status.phase!r}"
        time.sleep(0.02)
    assert status.error == (
        f"the base image {base} can't be read, as 127.0.0.1 can't be reached from this machine "
        "(Connection refused): name one that can with --base IMAGE, or for all jobs with "
        "%distrain config base_image=IMAGE; without any registry, a rehearsal runs with "
        "%distrain config base_image=scratch"
    )


def test_docker_counts_its_layers(cloud: Cloud) -> None:
    image = cloud.image("print('its own layer')", "counted")
    found = engine.docker.find()
    assert found is not None
    steps: list[Progress] = []
    with report_to(steps.append):
        found.pull(image)
    assert steps[0].phase == "pulling the image"
    (there, layers) = map(int, re.findall(r"\d+", steps[-1].phase))
    assert steps[-1].phase == f"pulling the image, {layers} of {layers} layers are here"
    assert there > 1
