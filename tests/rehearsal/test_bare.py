"""The stand-in where nothing is there that runs an image: processes of this machine's Python."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal import engine
from tests.image.services.bases import BaseImage

from .conftest import Cloud, assert_unlisted, cloud_with, pool
from .test_jobs import TWO

LEAVES = """
import os, pathlib
pathlib.Path("notes.txt").write_text("where it works")
if os.environ["RANK"] == "0":
    pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"], "step").write_text("7")
"""


@pytest.fixture
def bare(
    home: None, small: BaseImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cloud]:
    """A machine whose PATH leads to a registry and to nothing else."""
    registry = shutil.which("docker-registry")
    assert registry
    (tmp_path / "docker-registry").symlink_to(registry)
    monkeypatch.setenv("PATH", str(tmp_path))
    with cloud_with(small) as running:
        yield running


def test_two_replicas_find_each_other_and_leave_files(bare: Cloud) -> None:
    image = bare.image(TWO + LEAVES)
    job = bare.wait(bare.submit(pool(image), pool(image)).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", bare.told(job)
    assert "[rank 0] primary heard: worker 0 is here True" in bare.said(job.name, "workerpool0-0")
    assert "[rank 1] worker spoke True" in bare.said(job.name, "workerpool1-0")
    assert bare.bucket.blob("out/checkpoints/step").download_as_bytes() == b"7"
    assert any("processes of this machine's Python" in x for x in bare.said(job.name, "service"))


def test_stopping(bare: Cloud) -> None:
    name = bare.submit(pool(bare.image("import time\nprint('ready')\ntime.sleep(600)"))).name
    bare.wait_for(name, "workerpool0-0", "ready")
    bare.jobs.cancel_custom_job(name=name)
    assert bare.wait(name).state.name == "JOB_STATE_CANCELLED"


def test_values_of_variables_are_on_no_command_line(bare: Cloud) -> None:
    assert_unlisted(bare)


def test_images_of_others_need_an_engine(bare: Cloud) -> None:
    job = bare.wait(bare.submit(pool(bare.base)).name)
    assert job.state.name == "JOB_STATE_FAILED"
    assert "can only run under Docker, Podman or bubblewrap" in job.error.message
    with pytest.raises(DistrainError, match="Install one of them"):
        engine.choose()
