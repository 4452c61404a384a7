"""Data of this machine that a job elsewhere reads: what is in them, and what they become."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.backends import local_folder
from distrain_nb.backends.local_folder import CACHE, Folder
from distrain_nb.config import CONFIG_FILE, private_home
from distrain_nb.errors import CheckFailed, DistrainError, OptionError
from distrain_nb.findings import Finding

pytestmark = pytest.mark.brief

VERTEX = {"on": "vertex", "primary": "n1-standard-4", "project": "p", "bucket": "b"}
SAGEMAKER = {
    "on": "sagemaker",
    "workers": "ml.m5.large",
    "region": "us-west-2",
    "role": "arn:aws:iam::123456789012:role/training",
}


@pytest.fixture
def images(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "images"
    for name in ("cat/1.txt", "cat/2.txt", "dog/1.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
        os.utime(folder / name, (1e9, 1e9))
    monkeypatch.chdir(tmp_path)
    return folder


def digest(folder: Path) -> str:
    return Folder.of(folder).digest()


def found(code: str, **options: str) -> dict[str, Finding]:
    return {each.code: each for each in api.check(code, **options)}


def test_the_digest_is_of_names_and_contents(images: Path, tmp_path: Path) -> None:
    before = digest(images)
    images.rename(tmp_path / "moved")
    (tmp_path / "moved/cat/1.txt").touch()
    assert digest(tmp_path / "moved") == before
    (tmp_path / "moved/cat/1.txt").write_text("cat/3.txt")
    changed = digest(tmp_path / "moved")
    (tmp_path / "moved/cat/1.txt").rename(tmp_path / "moved/cat/3.txt")
    assert len({before, changed, digest(tmp_path / "moved")}) == 3


def test_only_what_has_changed_is_read_again(
    images: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    hashed = local_folder._hash
    monkeypatch.setattr(
        local_folder, "_hash", lambda file: (read.append(file.name), hashed(file))[1]
    )
    before = digest(images)
    assert digest(images) == before
    assert sorted(read) == ["cat/1.txt", "cat/2.txt", "dog/1.txt"]
    (images / "dog/1.txt").write_text("other")
    os.utime(images / "dog/1.txt", (time.time() + 3600,) * 2)  # however slow this machine is
    digest(images)
    assert read[3:] == ["dog/1.txt"]
    digest(images)  # it was written just now, so that its time may not tell of the next change
    assert read[4:] == ["dog/1.txt"]
    for kept in (home / CACHE).iterdir():
        kept.write_text("no JSON")
    assert digest(images) != before


def test_what_is_no_file_stays_here_and_is_named(images: Path) -> None:
    (images / "broken").symlink_to("nowhere")
    os.mkfifo(images / "dog/pipe")
    finding = found("open(images)", data="images=images", **VERTEX)["remote.data-passed-over"]
    assert finding.message.startswith("broken and 1 more of ")
    assert finding.where == "--data images"


def test_links_are_followed_and_none_leads_round_in_a_circle(images: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/9.txt").write_text("9")
    (images / "linked").symlink_to(tmp_path / "more")
    (images / "back").symlink_to(images)
    (images / "gone").symlink_to(tmp_path / "nowhere")
    names = [each.name for each in Folder.of(images).files]
    assert names == ["cat/1.txt", "cat/2.txt", "dog/1.txt", "linked/9.txt"]


def test_what_several_links_lead_to_is_there_by_each_name(images: Path, tmp_path: Path) -> None:
    (images / "also").symlink_to("cat")
    for split in ("train", "val"):
        (images / split).symlink_to(tmp_path / "all")
    (tmp_path / "all/deep").mkdir(parents=True)
    (tmp_path / "all/deep/9.txt").write_text("9")
    (tmp_path / "all/deep/up").symlink_to(tmp_path / "all")
    (images / "dog/cats").symlink_to(images / "cat")
    (images / "cat/dogs").symlink_to(images / "dog")
    names = {each.name for each in Folder.of(images).files}
    cats, dogs = {"1.txt", "2.txt"}, {"1.txt"}
    assert names == {
        *(f"{folder}/{name}" for folder in ("cat", "also", "dog/cats") for name in cats),
        *(f"{folder}/{name}" for folder in ("dog", "cat/dogs", "also/dogs") for name in dogs),
        *(f"{split}/deep/9.txt" for split in ("train", "val")),
    }


@pytest.mark.parametrize("name", [b"a\nb", b"\xff"])
def test_a_name_that_no_bucket_takes_is_refused(images: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(images) + b"/" + name)).write_text("x")
    with pytest.raises(DistrainError, match="no bucket accepts the file name"):
        Folder.of(images)


@pytest.mark.parametrize("written", ["./images", "images/", "file://{}", "{}"])
def test_a_folder_becomes_one_of_the_bucket_on_vertex(images: Path, written: str) -> None:
    data = f"train={written.format(images)}"
    prepared = api.prepare("open(train)", data=data, **VERTEX)
    target = f"b/distrain/data/{digest(images)}"
    assert f"train = '/gcs/{target}'" in prepared.job.program.main
    (said,) = [each for each in prepared.findings if each.code == "remote.data"]
    assert said.where == "--data train"
    assert said.message == (
        f"before the run starts, {images} (3 files, 27 B) is uploaded to gs://{target}; files that "
        "are already there are skipped"
    )
    (upload,) = prepared.plan.spec().uploads
    assert (upload.source, upload.target) == (str(images), f"gs://{target}")


def test_a_folder_becomes_a_channel_on_sagemaker(images: Path) -> None:
    data = "train=images,mode=FastFile,sharded"
    prepared = api.prepare("open(train)", data=data, **SAGEMAKER)
    assert "train = '/opt/ml/input/data/train'" in prepared.job.program.main
    (channel,) = prepared.plan.request["InputDataConfig"]
    target = f"s3://sagemaker-us-west-2-${{ACCOUNT}}/distrain/data/{digest(images)}"
    assert channel["InputMode"] == "FastFile"
    assert channel["DataSource"]["S3DataSource"] == {
        "S3DataType": "S3Prefix",
        "S3Uri": target,
        "S3DataDistributionType": "ShardedByS3Key",
    }
    assert [each.target for each in prepared.plan.spec().uploads] == [target]


def test_a_single_file_keeps_its_name(images: Path) -> None:
    prepared = api.prepare("open(weights)", data="weights=images/cat/1.txt", **VERTEX)
    target = f"/gcs/b/distrain/data/{digest(images / 'cat/1.txt')}/1.txt"
    assert f"weights = {target!r}" in prepared.job.program.main
    assert "(1 file, 9 B)" in str(prepared)


@pytest.mark.parametrize("path", ["/mnt/nfs/data", "/gcs/b/train", "/no/such/folder"])
def test_what_the_machines_have_themselves_stays_there(images: Path, path: str) -> None:
    prepared = api.prepare("open(train)", data=f"train={path}", **VERTEX)
    assert f"train = {path!r}" in prepared.job.program.main
    assert prepared.job.uploads == ()


@pytest.mark.parametrize(
    ("data", "limit", "said"),
    [
        ("train=imags", "1", "train=imags: there is no imags on this machine"),
        ("train=file:///nowhere", "1", "there is no /nowhere on this machine"),
        ("train=empty", "1", "there are no files in .*empty"),
        (
            "train=images",
            "0.00000001",
            "27 B in 3 files are to be uploaded, more than 11 B: `%distrain config data_limit=2`",
        ),
    ],
)
def test_what_can_not_be_uploaded_is_said_first(
    images: Path, data: str, limit: str, said: str
) -> None:
    (images.parent / "empty").mkdir()
    (private_home() / CONFIG_FILE).write_text(f"data_limit: {limit}\n")
    with pytest.raises(OptionError, match=said):
        api.check("open(train)", data=data, **VERTEX)


def test_jobs_here_read_the_folder_itself(images: Path) -> None:
    prepared = api.prepare("open(train)", data="train=images")
    assert f"train = {str(images)!r}" in prepared.job.program.main
    assert "remote.data" not in {each.code for each in prepared.findings}


def test_what_looks_like_a_secret_does_not_leave(images: Path) -> None:
    (images / "cat/.netrc").write_text("machine a login b password c")
    (images / "notes.txt").write_text("\nkey = 'AKIAIOSFODNN7ABCDEFG'\n")
    (images / "binary.bin").write_bytes(b"\0AKIAIOSFODNN7ABCDEFG")
    with pytest.raises(CheckFailed) as refused:
        api.submit("open(train)", data="train=images", rehearse="", **VERTEX)
    said = str(refused.value)
    assert "--data train, cat/.netrc" in said
    assert "allow it with --allow-secret train/cat/.netrc" in said
    assert "--data train, notes.txt, line 2" in said
    assert "binary.bin" not in said
    assert api.runs() == []
