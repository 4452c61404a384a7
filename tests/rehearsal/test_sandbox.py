"""The stand-in on a machine without a container engine: bubblewrap and unpacked images."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.config import private_home
from distrain_nb.errors import ImageError
from distrain_nb.places.vertex.stand_in.buckets import DATA
from distrain_nb.program.progress import report_to
from distrain_nb.rehearsal.engine import unpacked
from distrain_nb.rehearsal.engine.image_root import host_path
from distrain_nb.rehearsal.engine.unpacked import unpack
from distrain_nb.worker.files.status import Progress
from tests.image.services.bases import BaseImage, Blob

from .conftest import Cloud, assert_unlisted, cloud_with, pool
from .test_jobs import TWO

PLACE = """\
import os, pathlib, socket
print("host", socket.gethostname(), socket.gethostbyname(socket.gethostname()))
pathlib.Path("notes.txt").write_text("where it works")
pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"], "step").write_text("7")
print("others", [x for x in os.listdir("/proc") if x.isdigit() and int(x) > 60])
mine = pathlib.Path("/gcs/linked/mine")
print("linked", mine.read_text())
try:
    mine.unlink()
except OSError as refused:
    print(refused.strerror)
"""


@pytest.fixture
def sandboxed(no_docker: None, small: BaseImage) -> Iterator[Cloud]:
    with cloud_with(small) as running:
        yield running


@pytest.mark.stands_for("a sandbox in a container engine's place")
def test_two_replicas_find_each_other(sandboxed: Cloud) -> None:
    cloud = sandboxed
    image = cloud.image(TWO)
    job = cloud.wait(cloud.submit(pool(image), pool(image)).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    assert "[rank 0] primary heard: worker 0 is here True" in cloud.said(job.name, "workerpool0-0")
    assert any("bubblewrap" in text for text in cloud.said(job.name, "service"))


def test_a_replica_has_a_name_an_address_and_buckets(sandboxed: Cloud, tmp_path: Path) -> None:
    cloud = sandboxed
    (tmp_path / "mine").write_text("of elsewhere")
    linked = private_home() / DATA / "linked"
    linked.parent.mkdir(parents=True, exist_ok=True)
    linked.symlink_to(tmp_path)
    job = cloud.wait(cloud.submit(pool(cloud.image(PLACE))).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    said = cloud.said(job.name, "workerpool0-0")
    assert said[0].startswith("[rank 0] host cmle-training-workerpool0-")
    assert said[0].endswith("-0 127.0.1.1")
    assert said[1] == "[rank 0] others []"
    assert said[2:4] == ["[rank 0] linked of elsewhere", "[rank 0] Read-only file system"]
    assert cloud.bucket.blob("out/checkpoints/step").download_as_bytes() == b"7"


def test_stopping(sandboxed: Cloud) -> None:
    cloud = sandboxed
    name = cloud.submit(pool(cloud.image("import time\nprint('ready')\ntime.sleep(600)"))).name
    cloud.wait_for(name, "workerpool0-0", "ready")
    cloud.jobs.cancel_custom_job(name=name)
    assert cloud.wait(name).state.name == "JOB_STATE_CANCELLED"


def test_values_of_variables_are_on_no_command_line(sandboxed: Cloud) -> None:
    assert_unlisted(sandboxed)


def layer(folder: Path, *entries: tuple[str, str, str]) -> Blob:
    """A layer of files (`f`), links (`s`, `l`) and folders (`d`): kind, name, content or target."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for kind, name, content in entries:
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            types = {"f": tarfile.REGTYPE, "s": tarfile.SYMTYPE, "l": tarfile.LNKTYPE}
            entry.type = types.get(kind, tarfile.DIRTYPE)
            entry.size = len(content) if kind == "f" else 0
            entry.linkname = content if kind in "sl" else ""
            tar.addfile(entry, io.BytesIO(content.encode()) if kind == "f" else None)
    # in two members, as big layers are
    packed = gzip.compress(data.getvalue()[:1000]) + gzip.compress(data.getvalue()[1000:])
    digest = hashlib.sha256(packed).hexdigest()
    path = folder / digest
    path.write_bytes(packed)
    return Blob(path, f"sha256:{digest}", f"sha256:{digest}")


def test_layers_lie_over_each_other(sandboxed: Cloud, tmp_path: Path) -> None:
    lower = layer(
        tmp_path,
        *(("f", "a/kept", "1"), ("f", "a/gone", "2"), ("f", "b/old", "3"), ("s", "c", "/a")),
        *(("f", "a/changed", "before"), ("f", "d", "a file"), ("l", "e", "a/kept")),
    )
    upper = layer(
        tmp_path,
        *(("f", "a/.wh.gone", ""), ("f", "b/new", "4"), ("f", "b/.wh..wh..opq", "")),
        *(("f", "c/through", "5"), ("f", "a/changed", "after"), ("d", "d", "")),
        ("f", "d/now", "a folder"),
    )
    names = [f"{sandboxed.endpoints['registry']}/layers/x:{n}" for n in (1, 2)]
    BaseImage((lower,)).push(names[0])
    BaseImage((lower, upper)).push(names[1])
    below, whole = (unpack(name).root for name in names)
    found = {str(x.relative_to(whole)): x.read_text() for x in whole.rglob("*") if x.is_file()}
    assert found == {
        "a/kept": "1",
        "a/changed": "after",
        "a/through": "5",
        "b/new": "4",
        "d/now": "a folder",
        "e": "1",
        "etc/hosts": "",
        "etc/resolv.conf": "",
    }
    assert (below / "a/changed").read_text() == "before"
    assert host_path(whole, "/c/kept") == whole / "a/kept"


def test_a_large_layer_is_unpacked_once_for_all_that_lie_on_it(
    sandboxed: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacked, "_LARGE", 1000)
    large = layer(tmp_path, ("f", "large", random.Random(0).randbytes(2000).hex()))
    roots, steps = list[Path](), list[Progress]()
    for n in "12":
        image = f"{sandboxed.endpoints['registry']}/layers/large:{n}"
        small = (layer(tmp_path, ("f", f"{name}{n}", n)) for name in ("worker", "program"))
        BaseImage((large, *small)).push(image)
        with report_to(steps.append):
            roots.append(unpack(image).root)
    first, second = roots
    assert (first / "large").samefile(second / "large")
    assert (second / "worker2").read_text() == "2" and not (second / "worker1").exists()
    unpacking = [n for n, _ in itertools.groupby(x.phase for x in steps if " layer " in x.phase)]
    assert [int(phase.split()[2]) for phase in unpacking] == [1, 2, 3, 2, 3]


def test_links_lead_nowhere_outside(tmp_path: Path) -> None:
    (tmp_path / "up").symlink_to("../../../etc")
    (tmp_path / "round").symlink_to("round")
    assert host_path(tmp_path, "up/passwd") == tmp_path / "etc/passwd"
    with pytest.raises(ImageError, match="too many links"):
        host_path(tmp_path, "round")
