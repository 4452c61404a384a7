"""A job that may do what it likes in its folders, and whoever names objects, reach nothing else."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import boto3
import httpx
import pytest
from moto import mock_aws

from distrain_nb.config import private_home
from distrain_nb.places.sagemaker.stand_in.channels import InputObject, download
from distrain_nb.places.sagemaker.stand_in.hosts import CHECKPOINTS, Host, HostDisk
from distrain_nb.places.sagemaker.stand_in.store import ObjectStore, S3Location, SyncedFolder
from distrain_nb.places.vertex.stand_in.buckets import DATA, buckets
from distrain_nb.places.vertex.stand_in.replicas import METRICS_FILE
from distrain_nb.rehearsal import job_folder
from distrain_nb.rehearsal.job_folder import JobFolder, OutsideJobFolder

pytestmark = pytest.mark.brief

SECRET = "of the host alone"
RACES = 1000
NO_NAMES = (
    "", ".", "..", "../planted", "a/../../planted", "/planted", "//planted", "a//b", "a/./b", "a/",
    "a\0b", "x" * 1025, "a/" * 600 + "b", "\udc80",
)  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


@pytest.fixture(params=["openat2", "walk"])
def disk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> JobFolder:
    if request.param == "walk":  # as on a kernel that has no such call
        monkeypatch.setattr(job_folder, "_OPENAT2", 100_000)
    (tmp_path / "disk").mkdir()
    return JobFolder(tmp_path / "disk")


def assert_untouched(outside: Path) -> None:
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret": SECRET}


def plant(folder: Path, outside: Path) -> None:
    """What a job may make in its folder."""
    (folder / "real").mkdir(parents=True)
    (folder / "real" / "file").write_text("of the job")
    for name, target in {
        "absolute": str(outside / "secret"),
        "relative": os.path.relpath(outside / "secret", folder),
        "folder": str(outside),
        "real/up": "../..",
        "kernel": "/proc/self/root" + str(outside / "secret"),
        "itself": "itself",
        "nowhere": "nothing",
    }.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_that_no_file_can_have(disk: JobFolder, name: str) -> None:
    (disk.root / "a").mkdir()
    doing: tuple[Callable[[str], object], ...] = (
        lambda name: list(disk.pieces(name)),
        lambda name: disk.write(name, [b"planted"]),
        disk.unlink,
        disk.make_pipe,
        disk.open_pipe,
    )
    for do in doing:
        with pytest.raises(OutsideJobFolder):
            do(name)
    assert [path.name for path in disk.root.parent.iterdir()] == ["disk"]
    assert list(disk.files()) == []


def test_what_a_job_plants(disk: JobFolder, outside: Path) -> None:
    plant(disk.root, outside)
    assert [name for name, _ in disk.files()] == ["real/file"]
    for name in ("absolute", "relative", "folder/secret", "real/up/host/secret", "kernel",
                 "itself", "nowhere", "pipe", "real"):  # fmt: skip
        with pytest.raises(OSError):
            list(disk.pieces(name))
    for name in ("folder/planted", "real/up/planted", "pipe/planted"):
        with pytest.raises(OSError):
            disk.write(name, [b"planted"])
        with pytest.raises(OSError):
            disk.make_pipe(name)
    with pytest.raises(OSError):
        disk.unlink("folder/secret")
    for name in ("absolute", "real/file"):
        with pytest.raises(OSError):
            disk.open_pipe(name)
    disk.write("absolute", [b"in its ", b"place"])
    assert b"".join(disk.pieces("absolute")) == b"in its place"
    assert_untouched(outside)


def test_a_link_within_the_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / "7").write_bytes(b"seven")
    (tmp_path / "last").symlink_to("steps/7")
    folder = JobFolder(tmp_path)
    assert [name for name, _ in folder.files()] == ["last", "steps/7"]
    assert b"".join(folder.pieces("last")) == b"seven"


def test_a_job_that_swaps_folders_for_links_while_its_host_looks(
    disk: JobFolder, outside: Path
) -> None:
    (disk.root / "a").mkdir()
    (disk.root / "a" / "secret").write_text("of the job")
    (disk.root / "b").symlink_to(outside)
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            for old, new in (("a", "c"), ("b", "a"), ("a", "b"), ("c", "a")):
                while True:
                    with suppress(OSError):  # its host has made a folder there meanwhile
                        (disk.root / old).rename(disk.root / new)
                        break
                    shutil.rmtree(disk.root / new, ignore_errors=True)

    job = threading.Thread(target=swap)
    job.start()
    try:
        for _ in range(RACES):
            with job_folder.ignoring_job_errors():
                assert b"".join(disk.pieces("a/secret")) != SECRET.encode()
            with job_folder.ignoring_job_errors():
                disk.write("a/planted", [b"planted"])
            with job_folder.ignoring_job_errors():
                disk.unlink("a/secret2")
    finally:
        ended.set()
        job.join()
    assert_untouched(outside)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_what_the_system_lacks_is_no_doing_of_the_job(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What isn't seen for that reason would count as deleted."""

    def fail(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    (tmp_path / "file").touch()
    monkeypatch.setattr(job_folder, "_open_beneath", fail)
    with pytest.raises(OSError, match=os.strerror(number)):
        list(JobFolder(tmp_path).files())


def test_buckets_of_vertex_bring_nothing_of_the_host(
    home: Path, tmp_path: Path, outside: Path
) -> None:
    with buckets(tmp_path / "rehearsal") as stored:
        stored.create("pictures")
        (bucket,) = stored.mounted()
        plant(bucket.folder, outside)
        bucket.sync()
        assert set(bucket._objects()) == {"real/file"}
        for name in ("folder/planted", "real/up/planted", "good"):
            bucket.http.post(
                "/upload/storage/v1/b/pictures/o",
                params={"uploadType": "media", "name": name},
                content=b"planted",
            ).raise_for_status()
        bucket.sync()
        bucket.sync()
        assert (bucket.folder / "good").read_text() == "planted"
        (bucket.folder / "good").unlink()
        bucket.sync()
        assert "good" not in bucket._objects()
        with suppress(httpx.RemoteProtocolError):  # the emulator's way to refuse a path
            stored._http.post("/storage/v1/b", json={"name": "../../planted"})
        assert [each.name for each in stored.mounted()] == ["pictures"]
    assert_untouched(outside)
    assert not (tmp_path / "planted").exists()


def test_links_of_a_job_in_a_folder_of_the_users_are_not_kept(
    home: Path, tmp_path: Path, outside: Path
) -> None:
    theirs = private_home() / DATA / "other"
    theirs.mkdir(parents=True)
    (theirs / "linked").symlink_to(outside)
    with buckets(tmp_path / "rehearsal") as stored:
        assert stored.folders()["other"] == theirs
        (theirs / "planted").symlink_to(outside / "secret")
        (said,) = stored.keep()
    assert "planted" in said
    assert [path.name for path in theirs.iterdir()] == ["linked"]
    assert_untouched(outside)


def test_disks_of_sagemaker_bring_nothing_of_the_host(tmp_path: Path, outside: Path) -> None:
    machine = HostDisk(Host("algo-1", "", "ml.m5.large"), tmp_path / "algo-1" / "ml")
    request = {
        "CheckpointConfig": {"S3Uri": "s3://bucket/ckpt"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
    }
    machine.lay_out(request, "eth0")
    checkpoints = machine.folder / "checkpoints"
    with mock_aws():
        s3 = boto3.client("s3", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        store = ObjectStore(s3)
        store.create("bucket")
        place = S3Location("bucket", "ckpt")
        kept = SyncedFolder(machine.within(CHECKPOINTS), place, store)
        plant(checkpoints, outside)
        kept.save()
        assert store.keys(place) == ["ckpt/real/file"]
        checkpoints.rename(checkpoints.with_name("moved"))
        checkpoints.symlink_to(outside)  # the folder itself
        kept.save()
        assert store.keys(place) == ["ckpt/real/file"]
        with pytest.raises(OSError):
            kept.restore()
        checkpoints.unlink()
        for key in ("ckpt/../../../planted", "ckpt//planted", "ckpt/a/../b"):
            s3.put_object(Bucket="bucket", Key=key, Body=b"planted")
            with pytest.raises(OutsideJobFolder):
                SyncedFolder(machine.within(CHECKPOINTS), place, store).restore()
            piece = InputObject(S3Location("bucket", key), key.removeprefix("ckpt/"))
            with pytest.raises(OutsideJobFolder):
                download([piece], store, JobFolder(machine.folder, "input/data/train"))
            s3.delete_object(Bucket="bucket", Key=key)
    assert_untouched(outside)
    assert not list(tmp_path.rglob("planted"))


def test_metrics_of_a_trial_are_a_file_of_its_own(tmp_path: Path, outside: Path) -> None:
    from distrain_nb.places.vertex.stand_in.tuning_execution import MetricFiles  # Google's SDK

    metrics = MetricFiles(tmp_path / "trial")
    report = '{"timestamp": %s, "trial": "1", "global_step": %s, "loss": 0.5}\n'
    (outside / "secret").write_text(report % (1, 1))
    for number, name in enumerate(("linked", "piped", "huge", "good")):
        (tmp_path / "trial" / f"{number}-{name}").mkdir(parents=True)
    linked, piped, huge, good = sorted((tmp_path / "trial").iterdir())
    (linked / METRICS_FILE).symlink_to(outside / "secret")
    os.mkfifo(piped / METRICS_FILE)
    (huge / METRICS_FILE).write_text(report % ("1e300", "1e999") + "[" * 100_000)
    metrics.read()
    assert list(metrics.reports) == []
    (good / METRICS_FILE).write_text(report % (2, 3))
    metrics.read()
    assert list(metrics.reports) == [(3, 2.0, "loss", 0.5)]
