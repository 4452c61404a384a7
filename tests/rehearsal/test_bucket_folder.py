"""What a rehearsed job may write and delete of the folder that stands for a bucket."""

from __future__ import annotations

import os
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from distrain_nb.config import private_home
from distrain_nb.places.sagemaker.stand_in.store import KeptBucket, ObjectStore
from distrain_nb.places.vertex.stand_in.buckets import DATA, buckets

pytestmark = pytest.mark.brief


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("kept", "changed"):
        (folder / name).write_text("mine")
    return folder


def standing(folder: Path, outside: Path) -> Path:
    """A folder with files of its own, and links to a folder and to files that are elsewhere."""
    (folder / "distrain").mkdir(parents=True)
    for name in ("a", "b", "c", "distrain/x"):
        (folder / name).write_text("old")
    (folder / "linked").symlink_to(outside)
    (folder / "file").symlink_to(outside / "kept")
    (folder / "other").symlink_to(outside / "changed")
    return folder


def test_a_job_on_vertex_reaches_nothing_behind_links(
    home: Path, tmp_path: Path, outside: Path
) -> None:
    folder = standing(private_home() / DATA / "photos", outside)
    (folder / "broken").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    with buckets(tmp_path / "rehearsal") as stored:
        stored.create("photos")
        assert not {"broken", "pipe"} & {path.name for path in stored.folder.glob("photos/*")}
        mirror = stored.folder / "photos"
        assert contents(mirror)["linked/kept"] == "mine"  # which the job may read
        for name in ("a", "file", "linked/kept", "distrain/x"):
            (mirror / name).unlink()
        for name in ("b", "other", "linked/changed", "linked/more", "deep/new"):
            (mirror / name).parent.mkdir(exist_ok=True)
            (mirror / name).write_text("new")
        (said,) = stored.keep()
        assert list(stored.keep()) == []
    assert f"linked/changed and 2 more of {folder}" in said
    assert contents(outside) == {"kept": "mine", "changed": "mine"}
    for name in ("broken", "pipe"):  # which nobody has touched
        (folder / name).unlink()
    found = {"b": "new", "c": "old", "other": "new", "deep/new": "new", "distrain/x": "old"}
    assert {k: v for k, v in contents(folder).items() if not k.startswith("linked")} == found
    assert (folder / "linked").is_symlink()


@pytest.mark.parametrize("linked", [False, True])
def test_a_job_on_sagemaker_reaches_nothing_behind_links(
    linked: bool, tmp_path: Path, outside: Path
) -> None:
    whole = folder = standing(tmp_path / "buckets" / "real", outside)
    if linked:  # the bucket's own folder
        folder = tmp_path / "buckets" / "pictures"
        folder.symlink_to(whole)
    before = contents(whole)
    with mock_aws():
        s3 = boto3.client("s3", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        store = ObjectStore(s3)
        store.create("pictures")
        bucket = KeptBucket.fill("pictures", folder, store)
        for key in ("a", "file", "distrain/x"):
            s3.delete_object(Bucket="pictures", Key=key)
        for key in ("b", "other", "linked/changed", "deep/new", "../up", "distrain/y"):
            s3.put_object(Bucket="pictures", Key=key, Body=b"new")
        (said,) = bucket.save()
        assert list(bucket.save()) == []
    assert contents(outside) == {"kept": "mine", "changed": "mine"}
    assert not (tmp_path / "buckets" / "up").exists()
    if linked:
        assert contents(whole) == before
        return
    assert f"../up and 1 more of {folder}" in said
    found = {"b": "new", "c": "old", "other": "new", "deep/new": "new", "distrain/x": "old"}
    assert {k: v for k, v in contents(folder).items() if not k.startswith("linked")} == found
