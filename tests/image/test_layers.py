"""Layers: the same content gives the same bytes, and nothing is lost on the way."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distrain_nb.errors import ImageError
from distrain_nb.image.layers import MODIFIED, Layer, write_layer

pytestmark = pytest.mark.brief

LONG = "x" * 120


def lay_down(folder: Path, order: int) -> Path:
    """A folder with everything that can go wrong; `order` turns the order of creation around."""
    files = {
        "main.py": b"print('hello')\n",
        "empty": b"",
        "größe/数据.txt": "é".encode(),
        f"{LONG}/{LONG}/{LONG}.bin": bytes(range(256)) * 9000,
        "a/b/c/deep.txt": b"deep",
        "a-b.txt": b"sorts between a and a/b",
    }
    for name in sorted(files)[::order]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])
    (folder / "nothing").mkdir()
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "main.pyc").write_bytes(os.urandom(8))
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o700)
    (folder / "link").symlink_to("main.py")
    (folder / "dangling").symlink_to("../nowhere")
    (folder / "folder-link").symlink_to("a")
    return folder


def entries(layer: Layer) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(layer.path) as tar:
        return {entry.name: entry for entry in tar}


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    source = lay_down(tmp_path / "source", 1)
    return write_layer(tmp_path / "layer.tar.gz", {"/opt/p": source, "/opt/q/note": b"a note"})


def test_digests_and_size_are_those_of_the_file(layer: Layer) -> None:
    packed = layer.path.read_bytes()
    assert layer.digest == f"sha256:{hashlib.sha256(packed).hexdigest()}"
    assert layer.diff_id == f"sha256:{hashlib.sha256(gzip.decompress(packed)).hexdigest()}"
    assert layer.size == len(packed) == sum(map(len, layer.chunks()))


def test_names_kinds_and_modes(layer: Layer) -> None:
    found = entries(layer)
    assert set(found) >= {"opt/p", "opt/q/note", "opt/p/größe/数据.txt", "opt/p/nothing"}
    assert f"opt/p/{LONG}/{LONG}/{LONG}.bin" in found
    assert not any("__pycache__" in name for name in found)
    assert found["opt/p/nothing"].isdir()
    assert found["opt/p/run.sh"].mode == 0o755
    assert found["opt/p/main.py"].mode == 0o644
    assert found["opt/p/a"].mode == 0o755
    assert (found["opt/p/link"].linkname, found["opt/p/dangling"].linkname) == (
        "main.py",
        "../nowhere",
    )
    assert found["opt/p/folder-link"].issym()
    assert {(e.mtime, e.uid, e.gid, e.uname, e.gname) for e in found.values()} == {
        (MODIFIED, 0, 0, "", "")
    }


def test_a_folder_comes_before_what_is_in_it(layer: Layer) -> None:
    names = list(entries(layer))
    for name in names:
        parent = name.rpartition("/")[0]
        if parent in names:
            assert names.index(parent) < names.index(name)


def test_content_survives(layer: Layer, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", layer.path, "-C", tmp_path], check=True)
    out = tmp_path / "opt/p"
    assert (out / "größe/数据.txt").read_text(encoding="utf-8") == "é"
    assert (out / f"{LONG}/{LONG}/{LONG}.bin").read_bytes() == bytes(range(256)) * 9000
    assert (out / "link").read_bytes() == b"print('hello')\n"
    assert (tmp_path / "opt/q/note").read_bytes() == b"a note"


SCRIPT = """
import os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
os.umask(int(sys.argv[2], 8))
from image.test_layers import lay_down
from distrain_nb.image.layers import write_layer
folder = Path(sys.argv[1])
folder.mkdir()
layer = write_layer(folder / "out", {{"/opt/p": lay_down(folder / "in", int(sys.argv[3]))}})
print(layer.digest, layer.diff_id)
"""


def test_two_machines_make_the_same_layer(tmp_path: Path) -> None:
    """Another folder, time zone, locale, umask, hash seed, order of files, and time."""
    tests = Path(__file__).resolve().parents[1]
    script = SCRIPT.format(tests=str(tests))
    answers = []
    for folder, zone, language, umask, order in [
        ("one", "UTC", "C", "022", "1"),
        ("another-place", "Asia/Tokyo", "C.UTF-8", "077", "-1"),
    ]:
        variables = {
            **os.environ,
            "TZ": zone,
            "LC_ALL": language,
            "PYTHONHASHSEED": str(len(folder)),
            "PYTHONPATH": str(tests.parent),
        }
        command = [sys.executable, "-c", script, str(tmp_path / folder), umask, order]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        answers.append(done.stdout)
    assert answers[0] == answers[1]


def test_a_file_above_4_gib_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate((4 << 30) + 1)  # a hole: takes no room on the disk
    with pytest.raises(ImageError, match=r"huge has 4.0 GiB; .* at most 4 GiB.*--data"):
        write_layer(tmp_path / "layer", {"/opt/huge": tmp_path / "huge"})


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ImageError, match="neither a file, a folder nor a link"):
        write_layer(tmp_path / "layer", {"/opt/pipe": tmp_path / "pipe"})


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.dictionaries(
        st.text("abcé/ .", min_size=1, max_size=12)
        .map(lambda n: "/".join(p for p in n.split("/") if p.strip(". ")))
        .filter(bool)
        .map("/opt/{}.x".format),
        st.binary(max_size=3000),
        max_size=6,
    ),
    data=st.data(),
)
def test_the_order_of_a_mapping_does_not_matter(
    tmp_path: Path, content: dict[str, bytes], data: st.DataObject
) -> None:
    turned = dict(data.draw(st.permutations(list(content.items()))))
    one = write_layer(tmp_path / "one", content)
    other = write_layer(tmp_path / "other", turned)
    assert (one.digest, one.diff_id) == (other.digest, other.diff_id)
    with tarfile.open(one.path) as tar:
        for name, expected in content.items():
            member = tar.extractfile(name.strip("/"))
            assert member is not None
            assert member.read() == expected
