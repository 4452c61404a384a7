"""Data of this machine on their way to a bucket, by the clouds' own clients and real emulators."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex

import httpx
import pytest
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage

from distrain_nb.backends.remote.uploading import DataBucket, upload_all
from distrain_nb.backends.uploads import Upload, upload_of
from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.client import client
from distrain_nb.places.sagemaker.storage import S3Data
from distrain_nb.places.vertex.client import storage_client
from distrain_nb.places.vertex.storage import CloudStorageData
from distrain_nb.rehearsal.access import PrivateServer
from distrain_nb.worker.files.status import Progress

pytestmark = [pytest.mark.slow, pytest.mark.brief]

BUCKET, FILES = "my-bucket", 60


@dataclass
class Bucket:
    """A bucket that notes what is uploaded, and breaks off after `limit` objects; the file of the
    name `changing` is written anew while it goes there."""

    real: DataBucket
    uploaded: list[str] = field(default_factory=list)
    limit: int = FILES
    changing: str = ""

    def sizes(self, below: str) -> Mapping[str, int]:
        return self.real.sizes(below)

    def upload(self, path: Path, name: str) -> None:
        if len(self.uploaded) >= self.limit:
            raise Interrupted
        if path.name == self.changing:
            path.write_text("y" * path.stat().st_size)
        self.real.upload(path, name)
        self.uploaded.append(name)

    def remove(self, name: str) -> None:
        self.real.remove(name)


class Interrupted(Exception):
    pass


@contextmanager
def cloud_storage(folder: Path) -> Iterator[DataBucket]:
    storage = Storage(use_memory_fs=True, data_dir=str(folder / "objects"))
    server = PrivateServer(("127.0.0.1", 0), partial(RequestHandler, storage))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with httpx.Client(base_url=address, trust_env=False) as http:
        http.post("/storage/v1/b", json={"name": BUCKET}).raise_for_status()
    yield CloudStorageData(storage_client("my-project", {"storage": address}), BUCKET)
    server.shutdown()
    server.server_close()


@contextmanager
def s3(folder: Path) -> Iterator[DataBucket]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    of_s3 = client("s3", "us-east-1", {"s3": f"http://{host}:{port}"})
    bucket = f"{BUCKET}-{token_hex(4)}"  # all servers of a process have the same ones
    of_s3.create_bucket(Bucket=bucket)
    yield S3Data(of_s3, bucket)
    server.stop()


@pytest.fixture(params=[cloud_storage, s3])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bucket]:
    with request.param(tmp_path) as real:
        yield Bucket(real)


@pytest.fixture
def upload(home: Path, tmp_path: Path) -> Upload:
    folder = tmp_path / "images"
    for number in range(FILES):
        path = folder / f"class {number % 3}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * number)
        os.utime(path, (1e9, 1e9))
    return upload_of("train", folder, f"gs://{BUCKET}/distrain/data", 1.0)


def test_the_same_content_is_uploaded_once(store: Bucket, upload: Upload) -> None:
    told: list[Progress] = []
    upload_all(upload, store, told.append)
    below = f"distrain/data/{upload.digest}/"
    assert len(store.uploaded) == FILES
    assert store.sizes(below)[f"{below}class 2/2.txt"] == 2
    assert told[-1].phase == f"uploading {upload.source}"
    assert told[-1].total == upload.size
    upload_all(upload, store, told.append)
    assert len(store.uploaded) == FILES


def test_what_was_uploaded_before_an_interruption_stays(store: Bucket, upload: Upload) -> None:
    store.limit = 10
    with pytest.raises(Interrupted):
        upload_all(upload, store, lambda _: None)
    before = set(store.uploaded)
    assert 10 <= len(before) < FILES
    store.limit = 2 * FILES
    upload_all(upload, store, lambda _: None)
    assert len(store.uploaded) == len(set(store.uploaded)) == FILES


def test_what_has_changed_since_is_not_taken_for_what_was_planned(
    store: Bucket, upload: Upload
) -> None:
    path = Path(upload.source, "class 1", "1.txt")
    path.write_text("y")
    with pytest.raises(DistrainError, match="images has changed since the run was submitted"):
        upload_all(upload, store, lambda _: None)
    assert store.uploaded == []


def test_what_changes_meanwhile_is_taken_away_again(store: Bucket, upload: Upload) -> None:
    store.changing = "7.txt"
    with pytest.raises(DistrainError, match="submit it again"):
        upload_all(upload, store, lambda _: None)
    below = f"distrain/data/{upload.digest}/"
    assert f"{below}class 1/7.txt" in store.uploaded
    assert f"{below}class 1/7.txt" not in store.sizes(below)
