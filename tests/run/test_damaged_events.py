"""Event files as they are in the world: cut, damaged, put together, growing, replaced, huge."""

from __future__ import annotations

import os
import struct
import tracemalloc
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import tensorboardX
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.run.metrics.events import EventFolder, Key, event_files, scalars
from distrain_nb.worker.metrics.event_format import _varint, event
from distrain_nb.worker.metrics.writer import append
from tests.fuzzing import several
from tests.run.records import record
from tests.run.torch_writer import torch_writer

FILE = "events.out.tfevents.1"
BY_TENSORFLOW = Path(__file__).parent / "data" / "tensorflow.tfevents"
WRITERS = ("torch", "tensorboardX", "tensorflow", "log_metrics")


@cache
def written(writer: str) -> bytes:
    """A file of three scalars a step, of four steps."""
    if writer == "tensorflow":
        return BY_TENSORFLOW.read_bytes()
    with TemporaryDirectory() as folder:
        if writer == "log_metrics":
            made = [event(1.0, n, dict.fromkeys("abc", n / 2)) for n in range(4)]
            (Path(folder) / FILE).write_bytes(b"".join(map(record, made)))
        else:
            kind: Any = {"torch": torch_writer, "tensorboardX": tensorboardX.SummaryWriter}[writer]
            with kind(folder) as summary:
                for step in range(4):
                    for tag in "abc":
                        summary.add_scalar(tag, step / 2, step)
        (file,) = Path(folder).rglob("*tfevents*")
        return file.read_bytes()


@pytest.mark.slow
def test_tensorflow_writes_as_it_did(tmp_path: Path) -> None:
    """It takes five seconds to import, so the other tests have a file that it has written."""
    import tensorflow as tf

    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        for step in range(4):
            for tag in "abc":
                tf.summary.scalar(tag, step / 2, step=step)
    (file,) = tmp_path.rglob("*tfevents*")
    new, old = file.read_bytes(), written("tensorflow")
    assert list(map(len, records(new))) == list(map(len, records(old)))
    found, kept = points(read(new)), points(read(old))
    assert [(tag, step, value) for tag, step, _, value in found] == [
        (tag, step, value) for tag, step, _, value in kept
    ]


def records(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = 16 + struct.unpack_from("<Q", data)[0]
        found.append(data[:size])
        data = data[size:]
    return found


Point = tuple[str, int, float, float]


def points(folder: EventFolder) -> list[Point]:
    return [(key.tag, *point) for key in folder.keys for point in folder.points(key).tolist()]


def read(data: bytes) -> EventFolder:
    with TemporaryDirectory() as place:
        (Path(place) / FILE).write_bytes(data)
        folder = EventFolder(Path(place))
        folder.read()
        return folder


@pytest.mark.parametrize("writer", WRITERS)
def test_a_last_record_that_is_cut_anywhere_waits_for_its_rest(writer: str, tmp_path: Path) -> None:
    *before, last = records(written(writer))
    whole, first = sorted(points(read(written(writer)))), sorted(points(read(b"".join(before))))
    assert len(whole) == 12
    for cut in range(len(last)):
        file = tmp_path / str(cut) / FILE
        file.parent.mkdir()
        file.write_bytes(b"".join(before) + last[:cut])
        folder = EventFolder(file.parent)
        folder.read()
        assert sorted(points(folder)) == first
        with file.open("ab") as grown:
            grown.write(last[cut:])
        folder.read()
        assert sorted(points(folder)) == whole
        assert folder.notes == ()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_flipped_bit_of_a_length_costs_one_record(writer: str) -> None:
    parts = records(written(writer))
    hit = len(parts) // 2
    others = sorted(points(read(b"".join([*parts[:hit], *parts[hit + 1 :]]))))
    for bit in range(12 * 8):
        damaged = bytearray(parts[hit])
        damaged[bit // 8] ^= 1 << bit % 8
        folder = read(b"".join([*parts[:hit], bytes(damaged), *parts[hit + 1 :]]))
        assert sorted(points(folder)) == others
        assert folder.notes == (f"{FILE}: {len(damaged)} bytes that are not records",)


def test_what_shows_as_zeros_is_waited_for(tmp_path: Path) -> None:
    """As on a network's file system, where a length is seen before the data."""
    parts = records(written("torch"))
    file = tmp_path / FILE
    start = b"".join(parts[:-2])
    file.write_bytes(start + bytes(len(parts[-2])))
    folder = EventFolder(tmp_path)
    folder.read()
    assert folder.notes == (f"{FILE}: nothing to read from byte {len(start)} on",)
    with file.open("r+b") as later:
        later.write(start + parts[-2] + parts[-1])
    folder.read()
    assert sorted(points(folder)) == sorted(points(read(b"".join(parts))))
    assert folder.notes == ()


@pytest.mark.parametrize("noise", [b"\0", b"\1\0\0\0\0\0\0\0", b"noise"])
def test_megabytes_of_noise_are_passed_over_once(noise: bytes, tmp_path: Path) -> None:
    parts = records(written("torch"))
    between = noise * (2_000_000 // len(noise))
    file = tmp_path / FILE
    file.write_bytes(b"".join(parts[:-1]) + between)
    folder = EventFolder(tmp_path)
    folder.read()
    with file.open("ab") as grown:
        grown.write(parts[-1])
    folder.read()
    assert sorted(points(folder)) == sorted(points(read(b"".join(parts))))
    assert folder.notes == (f"{FILE}: {len(between):,} bytes that are not records",)


def test_files_of_all_writers_put_together_are_read_through() -> None:
    one_by_one = sorted(point for writer in WRITERS for point in points(read(written(writer))))
    assert sorted(points(read(b"".join(map(written, WRITERS))))) == one_by_one


@st.composite
def damages(draw: st.DrawFn) -> tuple[bytes, set[Point]]:
    """What is left of some files, and every point that was ever written to them."""
    writers = draw(st.lists(st.sampled_from(WRITERS), min_size=1, max_size=3))
    data = bytearray(b"".join(written(writer) for writer in writers) * draw(st.integers(1, 8)))
    there = {point for writer in writers for point in points(read(written(writer)))}
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["flip", "drop", "repeat", "noise", "cut"])):
            case "flip":
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "drop":
                del data[at : at + draw(st.integers(1, 200))]
            case "repeat":
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
            case "noise":
                data[at:at] = draw(st.binary(min_size=1, max_size=60))
            case _:
                del data[at:]
        if not data:
            break
    return bytes(data), there


@given(damages(), st.lists(st.integers(1, 2_000), max_size=6))
@settings(max_examples=several(150), deadline=None)
def test_no_point_is_read_that_was_never_written(
    damaged: tuple[bytes, set[Point]], ranges: list[int]
) -> None:
    """Whatever happened to a file, and in whatever ranges it is fetched from where it grows."""
    data, there = damaged
    in_one_go = points(read(data))
    assert set(in_one_go) <= there
    with TemporaryDirectory() as place:
        mirror = Path(place) / FILE
        folder = EventFolder(mirror.parent)
        told: dict[Key, int] = {}
        for size in [*ranges, len(data)]:
            with mirror.open("ab") as file:
                file.write(data[file.tell() :][:size])
            for key, news in folder.read().items():
                told[key] = told.get(key, 0) + len(news)
        assert sorted(points(folder)) == sorted(in_one_go)
        assert told == {key: len(folder.points(key)) for key in folder.keys}


def test_a_file_that_is_written_anew_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    file, other = tmp_path / FILE, tmp_path / "other" / FILE
    other.parent.mkdir()
    other.write_bytes(written("log_metrics"))
    file.write_bytes(written("torch"))
    folder = EventFolder(tmp_path)
    folder.read()
    file.unlink()
    assert folder.read() == {}
    file.write_bytes(written("log_metrics")[: len(written("log_metrics")) // 2])
    changed = folder.read()
    assert {key for key in changed if not key.series} == {Key("", tag) for tag in "abc"}
    assert [len(folder.points(Key("", tag))) for tag in "abc"] == [2, 2, 2]
    assert [len(folder.points(Key("other", tag))) for tag in "abc"] == [4, 4, 4]


@pytest.mark.slow
def test_200_000_tags(tmp_path: Path) -> None:
    begin, end = event(5.0, 3, {"tag0000000": 1.0}).split(b"0000000")
    with (tmp_path / FILE).open("wb") as file:
        file.writelines(record(b"%b%07d%b" % (begin, each, end)) for each in range(200_000))
    lines = scalars(tmp_path)
    assert len(lines) == 200_000
    for number in (0, 1, 77_777, 199_999):
        assert lines[Key("", f"tag{number:07}")].tolist() == [(3, 5.0, 1.0)]


def test_large_records_are_passed_over_in_bounded_memory(tmp_path: Path) -> None:
    picture = b"\x22" + _varint(1 << 20) + bytes(1 << 20)  # field 4 of an image's summary
    value = b"\x0a\x01p\x22" + _varint(len(picture)) + picture
    summary = b"\x0a" + _varint(len(value)) + value
    large = b"\x10\x01\x2a" + _varint(len(summary)) + summary
    with (tmp_path / FILE).open("wb") as file:
        for step in range(64):
            file.write(record(large))
            file.write(record(event(1.0, step, {"loss": 0.5})))
    folder = EventFolder(tmp_path)
    tracemalloc.start()
    folder.read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(folder.points(Key("", "loss"))) == 64
    (pictures,) = folder.non_scalars.rows.values()
    assert len(pictures) == 64
    assert peak < 24 << 20


def test_a_link_to_what_has_no_end_is_not_followed_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scandir(path))
    events = tmp_path / "events"
    append(events / "own", 1, {"loss": 1.0})
    append(tmp_path / "elsewhere" / "inner", 1, {"loss": 2.0})
    for place in ("/proc", "/", "/sys", str(tmp_path / "elsewhere")):
        (events / f"link-{len(place)}").symlink_to(place)
    files = [str(file) for file in event_files(events)]
    assert len(looked) < 25_000
    assert not any(os.path.realpath(file).startswith(("/proc/", "/sys/")) for file in files)
    assert any("/own/" in file for file in files)
    assert any("/inner/" in file for file in files)
