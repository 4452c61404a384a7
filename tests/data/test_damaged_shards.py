"""Shards and indexes that are damaged, or something else: the error names the file."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.data import pack, shards
from distrain_nb.worker.data.index import parsed
from tests.fuzzing import flipped, mutated, rounds


def tar(*names: str, mode: int = tarfile.USTAR_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=mode) as made:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            made.addfile(member, io.BytesIO(b"1"))
    return file.getvalue()


GOOD = tar("a.jpg", "a.cls", "b.jpg", "b.cls")
DAMAGED = {
    "cut in a content": (GOOD[:1700], "unexpected end of data"),
    "cut in a header": (GOOD[:1200], "byte 1024 is not the header"),
    "with a damaged header": (GOOD[:1030] + b"\xff" + GOOD[1031:], "byte 1024 is not the header"),
    "empty": (b"", "it is empty"),
    "an error page": (b"<html>404</html>" * 100, "it is a text that begins with '<html>404"),
    "gzipped": (gzip.compress(GOOD), "it is compressed by gzip"),
    "zipped": (b"PK\3\4" + bytes(600), "it is compressed by zip"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_shard_is_named(kind: str, tmp_path: Path) -> None:
    content, why = DAMAGED[kind]
    (tmp_path / "train-000000.tar").write_bytes(GOOD)
    (tmp_path / "train-000001.tar").write_bytes(content)
    with pytest.raises(ValueError, match=rf"train-000001.tar is not a complete tar file: .*{why}"):
        shards(str(tmp_path), 1)


def test_shards_that_are_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "train-000000.tar.gz").write_bytes(gzip.compress(GOOD))
    with pytest.raises(FileNotFoundError, match=r"but .*train-000000.tar.gz: .* unpack them"):
        shards(str(tmp_path), 1)
    with pytest.raises(ValueError, match=r"000000.tar.gz is not a complete .* compressed by gzip"):
        shards(str(tmp_path / "train-000000.tar.gz"), 1)
    (tmp_path / "train-000001.tar").write_bytes(tar())
    with pytest.raises(ValueError, match=r"no shard has a sample, up to .*train-000001.tar"):
        shards(str(tmp_path), 1)
    os.mkfifo(tmp_path / "train-000002.tar")
    with pytest.raises(ValueError, match=r"train-000002.tar is not a regular file"):
        shards(str(tmp_path), 1)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    for number in range(6):
        (folder / f"{number}.txt").write_text("a" * number)
    pack(str(folder), str(folder / "out"))
    return folder / "out"


NUMBERS = (-(2**63), -1, 0, 1, 511, 2**63, 1e999, True, None, "1", [], {})
NAMES = ("", "..", "../shard-000000.tar", "/dev/zero", "a\0b", 7)


@pytest.mark.parametrize("field", ["size", "end", "samples", "begin", "count", "blocks", "name"])
def test_each_field_of_an_index_is_checked(field: str, packed: Path) -> None:
    content = (packed / "index.json").read_text()
    for value in NAMES if field == "name" else NUMBERS:
        index = json.loads(content)
        shard = index["shards"][0]
        if field in ("begin", "count"):
            shard["blocks"][0][("begin", "count").index(field)] = value
        else:
            shard[field] = value
        unchanged = json.dumps(index) == json.dumps(json.loads(content))
        if unchanged or (field, value) in (("size", 2**63), ("end", 2**63)):
            continue  # a file that large is for `read` to miss
        with pytest.raises(ValueError, match=r"x/index.json is damaged: .* is not the record of"):
            parsed("x/index.json", json.dumps(index).encode())


PIECES = [
    *(b"{", b"}", b"[", b"]", b'"', b",", b":", b"0", b"-", b"9", b"e3", b".5", b"null", b"-1"),
    *(b"1e999", b"[" * 2000, b"\xff", b"/"),
]


def test_an_index_by_chance_is_read_or_named(packed: Path) -> None:
    content = (packed / "index.json").read_bytes()
    for chance in rounds(16, 5000):
        changed = mutated(chance, [content], PIECES)
        try:
            index = parsed("x/index.json", changed)
        except ValueError as error:
            assert "x/index.json" in str(error)
            continue
        for shard in index["shards"]:
            assert "/" not in shard["name"] and shard["end"] <= shard["size"]
            assert all(0 <= begin < shard["end"] and count > 0 for begin, count in shard["blocks"])
            numbers = (shard["size"], shard["end"], shard["samples"], *chain(*shard["blocks"]))
            assert {type(number) for number in numbers} == {int}


SEEDS = [
    GOOD,
    tar("folder/a.jpg", "folder/a.cls", f"{'long' * 40}.jpg", mode=tarfile.PAX_FORMAT),
    tar("folder/a.jpg", f"{'long' * 40}.jpg", "x.cls", mode=tarfile.GNU_FORMAT),
]


def read_all(path: Path) -> list[Any]:
    return list(shards(str(path), 1, collate=lambda batch: batch[0]))


def test_a_shard_by_chance_is_read_or_named(tmp_path: Path, packed: Path) -> None:
    beside = tmp_path / "out"
    beside.mkdir()
    whole = (packed / "shard-000000.tar").read_bytes()
    (beside / "index.json").write_bytes((packed / "index.json").read_bytes())
    for chance in rounds(17, 600):
        damage = chance.choice((flipped, lambda chance, data: mutated(chance, [data], [bytes(9)])))
        for path, data in (
            (tmp_path / "alone.tar", chance.choice(SEEDS)),
            (beside / "shard-000000.tar", whole),
        ):
            path.write_bytes(damage(chance, data))
            try:
                samples = read_all(path)
            except (ValueError, EOFError) as error:
                assert path.name in str(error)
            else:
                assert all(sample["__key__"] for sample in samples)
