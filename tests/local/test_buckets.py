"""Data in buckets, read by jobs on this machine: a real emulator of Cloud Storage, by gcsfs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage

from distrain_nb import api
from distrain_nb.data import pack, shards
from distrain_nb.errors import OptionError
from distrain_nb.places.local.buckets import fetch, place
from distrain_nb.program.progress import report_to
from distrain_nb.worker.files.status import Progress

GIB = 1 << 30
# Names of objects are any text.
HOSTILE = {"bucket": "pictures", "name": "hostile/../../../../out", "size": "1", "generation": "1"}
DATA = "train=gs://pictures/train"
SUM = """
from pathlib import Path
total = sum(int(path.read_text()) for path in Path(train).rglob("*.txt"))
"""


@dataclass
class Bucket:
    """A bucket called `pictures`; `fetched` are the paths of the objects that were downloaded."""

    http: httpx.Client
    fetched: list[str] = field(default_factory=list)

    def put(self, name: str, content: str) -> None:
        upload = {"uploadType": "media", "name": name}
        path = "/upload/storage/v1/b/pictures/o"
        self.http.post(path, params=upload, content=content).raise_for_status()

    def delete(self, name: str) -> None:
        self.http.delete(f"/storage/v1/b/pictures/o/{name}").raise_for_status()


@pytest.fixture
def bucket(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    seen: list[str] = []

    class Seen(RequestHandler):  # type: ignore[misc]
        def do_GET(self) -> None:  # noqa: N802
            if "alt=media" in self.path or "/download/" in self.path:
                seen.append(self.path)
            if "prefix=hostile" in self.path:
                self.answer({"items": [HOSTILE]})
            else:
                super().do_GET()

        def answer(self, said: object) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            pass

    storage = Storage(use_memory_fs=True, data_dir=str(tmp_path / "objects"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Seen, storage))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    with httpx.Client(base_url=address, trust_env=False) as http:
        http.post("/storage/v1/b", json={"name": "pictures"}).raise_for_status()
        yield Bucket(http, seen)
    server.shutdown()
    server.server_close()


@pytest.mark.brief
def test_a_cell_reads_a_bucket_that_is_fetched_once(bucket: Bucket) -> None:
    bucket.put("train/a.txt", "1")
    bucket.put("train/deep/b c.txt", "2")
    bucket.put("trained.txt", "not asked for")
    (said,) = [f for f in api.check("open(train)", data=DATA) if f.code == "local.data"]
    assert f"is downloaded to {place('gs://pictures/train')}" in said.message
    options = {"data": DATA, "result": "total", "wait": True}
    assert api.submit(SUM, **options).results["total"] == 3
    assert len(bucket.fetched) == 2
    bucket.put("train/deep/b c.txt", "4")
    bucket.delete("train/a.txt")
    assert api.submit(SUM, **options).results["total"] == 4
    assert len(bucket.fetched) == 3
    assert api.submit(SUM, **options).results["total"] == 4
    assert len(bucket.fetched) == 3


@pytest.mark.brief
def test_patterns_and_single_objects(bucket: Bucket) -> None:
    for number in range(12):
        bucket.put(f"shards/train-{number:03}.tar", str(number))
    for uri, count in (
        ("gs://pictures/shards/train-{000..003}.tar", 4),
        ("gs://pictures/shards/train-01*.tar", 2),
        ("gs://pictures/shards/train-007.tar", 1),
    ):
        bucket.fetched.clear()
        fetch("train", uri, GIB)
        assert len(bucket.fetched) == count
    assert Path(place("gs://pictures/shards/train-007.tar")).read_text() == "7"
    assert place("gs://pictures/a-{0..3}.tar").endswith("/cache/data/gs/pictures/a-{0..3}.tar")


def test_a_bucket_is_packed_into_a_bucket_and_read_there(bucket: Bucket, tmp_path: Path) -> None:
    for number in range(40):
        bucket.put(f"train/{number:02}.txt", str(number))
    packed = pack("gs://pictures/train", "gs://pictures/shards", shuffle=3)
    assert (packed.samples, packed.shards, packed.kept) == (40, 1, 0)
    assert pack("gs://pictures/train", "gs://pictures/shards", shuffle=3).kept == 1
    with pytest.raises(OptionError, match="shards of other samples"):
        pack("gs://pictures/train", "gs://pictures/shards")
    pack("gs://pictures/train", str(tmp_path / "here"), shuffle=3)
    whole = (tmp_path / "here/shard-000000.tar").read_bytes()
    assert bucket.http.get("/pictures/shards/shard-000000.tar").content == whole
    batches = list(shards("gs://pictures/shards", 8, shuffle=1))
    assert sorted(int(text) for batch in batches for text in batch["txt"]) == list(range(40))
    with pytest.raises(OptionError, match="no files are there"):
        pack("gs://pictures/missing", "gs://pictures/other")


@pytest.mark.brief
def test_what_was_fetched_before_an_interruption_stays(bucket: Bucket) -> None:
    for number in range(40):
        bucket.put(f"many/{number}", "x")
    heard: list[Progress] = []
    before = threading.enumerate()

    def interrupt(progress: Progress) -> None:
        heard.append(progress)
        if progress.total and progress.done >= 10:
            raise KeyboardInterrupt

    with report_to(interrupt), pytest.raises(KeyboardInterrupt):
        fetch("train", "gs://pictures/many", GIB)
    assert heard[-1].total == 40
    with report_to(interrupt), pytest.raises(KeyboardInterrupt):
        api.submit("print(train)", data="train=gs://pictures/many", wait=True)
    assert [str(run.state) for run in api.runs()] == ["cancelled"]
    (manifest,) = Path(place("gs://pictures/many")).parents[1].glob(".fetched/*")
    *kept, _ = (json.loads(line)[0] for line in manifest.read_text().splitlines())
    manifest.write_text(manifest.read_text()[:-5])  # as a kill cuts off the last line
    for thread in threading.enumerate():
        if thread not in before and thread.name.startswith("ThreadPoolExecutor"):
            thread.join()  # what was under way
    bucket.fetched.clear()
    fetch("train", "gs://pictures/many", GIB)
    assert len(list(Path(place("gs://pictures/many")).iterdir())) == 40
    again = {f"pictures/many/{unquote(path).partition('many/')[2].partition('?')[0]}"
             for path in bucket.fetched}  # fmt: skip
    assert len(kept) >= 9 and not again.intersection(kept)


@pytest.mark.brief
def test_what_cannot_be_fetched_is_said_before_anything_starts(bucket: Bucket, home: Path) -> None:
    bucket.put("large", "x" * 2000)
    for uri, limit, said in (
        ("gs://pictures/none", 1.0, "train=gs://pictures/none: nothing is there"),
        ("gs://others/none", 1.0, "train=gs://others/none: nothing is there"),
        (
            "gs://pictures/large",
            1e-6,
            "1.953 KiB in 1 files are to be fetched, more than 1.049 KiB",
        ),
    ):
        with pytest.raises(OptionError, match=said):
            fetch("train", uri, limit)
    with pytest.raises(OptionError, match="leads out of the bucket"):
        fetch("train", "gs://pictures/hostile", GIB)
    with pytest.raises(OptionError, match="nothing is there"):
        api.submit("print(train)", data="train=gs://pictures/none", wait=True)
    assert api.runs() == []


def test_s3_says_what_it_needs_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(OptionError, match="to read s3:// here, %pip install 's3fs'"):
        fetch("train", "s3://pictures/train", GIB)
