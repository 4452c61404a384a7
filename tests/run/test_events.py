"""Reading event files: all writers, growing, cut off, corrupt and restarted ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorboardX
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from distrain_nb.run.metrics.events import EventFolder, Key, scalars, table
from distrain_nb.run.metrics.records import read_stretch
from distrain_nb.worker.metrics import event_format
from distrain_nb.worker.supervisor import retries
from tests.fuzzing import several
from tests.run.torch_writer import torch_writer


def record(step: int, **numbers: float) -> bytes:
    return event_format.record(event_format.event(1000.0 + step, step, numbers))


def steps(folder: EventFolder, tag: str, series: str = "") -> list[int]:
    return folder.points(Key(series, tag))["step"].tolist()


def assert_like_tensorboard(folder: Path) -> None:
    accumulator = EventAccumulator(
        str(folder), size_guidance={"scalars": 0, "tensors": 0}, purge_orphaned_data=True
    )
    accumulator.Reload()
    ours = scalars(folder)
    assert {key.tag for key in ours} == set(accumulator.Tags()["scalars"])
    for key, points in ours.items():
        theirs = accumulator.Scalars(key.tag)
        assert points["step"].tolist() == [event.step for event in theirs]
        assert points["wall_time"].tolist() == [event.wall_time for event in theirs]
        assert points["value"].tolist() == [event.value for event in theirs]


@pytest.mark.parametrize("writer", [torch_writer, tensorboardX.SummaryWriter])
def test_reads_what_torch_and_tensorboardx_write(writer: Any, tmp_path: Path) -> None:
    with writer(str(tmp_path)) as summary:
        for step in range(0, 30_000, 100):
            summary.add_scalar("loss", math.sin(step), step)
            summary.add_scalar("acc", math.cos(step), step)
            summary.add_scalar("much_longer_name/学習率", step * 1e-5, step)
        summary.add_histogram("weights", np.arange(10.0), 1)
        summary.add_text("note", "not a number", 1)
        summary.add_scalar("late", float("nan"), 2**40)
    points = scalars(tmp_path)
    assert np.isnan(points[Key("", "late")]["value"]).all()
    assert points[Key("", "late")]["step"].tolist() == [2**40]
    assert {key.tag for key in points} == {"loss", "acc", "much_longer_name/学習率", "late"}
    assert points[Key("", "loss")]["value"].tolist() == [
        float(np.float32(math.sin(step))) for step in range(0, 30_000, 100)
    ]


def test_agrees_with_tensorboard_on_every_number(tmp_path: Path) -> None:
    with torch_writer(str(tmp_path)) as summary:
        for step in range(500):
            for tag in ("loss", "accu", "lr"):
                summary.add_scalar(tag, math.sin(step), step)
    assert_like_tensorboard(tmp_path)


@pytest.mark.slow
def test_reads_the_tensors_that_tensorflow_writes(tmp_path: Path) -> None:
    import tensorflow

    with tensorflow.summary.create_file_writer(str(tmp_path)).as_default():
        for step in range(300):
            tensorflow.summary.scalar("loss", math.sin(step), step=step)
            tensorflow.summary.scalar("count", step, step=step)
        tensorflow.summary.histogram("weights", [1.0, 2.0], step=1)
        tensorflow.summary.text("note", "words", step=1)
    points = scalars(tmp_path)
    assert set(points) == {Key("", "loss"), Key("", "count")}
    assert points[Key("", "count")]["value"].tolist() == list(range(300))
    assert points[Key("", "loss")]["value"].tolist() == [
        float(np.float32(math.sin(step))) for step in range(300)
    ]


def test_new_style_scalars_of_torch_are_tensors(tmp_path: Path) -> None:
    with torch_writer(str(tmp_path)) as summary:
        for step in range(100):
            summary.add_scalar("loss", step / 4, step, new_style=True)
            summary.add_scalar("exact", step / 8, step, double_precision=True)
    points = scalars(tmp_path)
    assert points[Key("", "loss")]["value"].tolist() == [step / 4 for step in range(100)]
    assert points[Key("", "exact")]["value"].tolist() == [step / 8 for step in range(100)]


def test_sub_folders_are_series(tmp_path: Path) -> None:
    for name in ("", "rank-1", "eval/fold2"):
        with torch_writer(str(tmp_path / name)) as summary:
            summary.add_scalar("loss", len(name), 1)
    folder = EventFolder(tmp_path)
    folder.read()
    assert set(folder.keys) == {Key(s, "loss") for s in ("", "rank-1", "eval/fold2")}


def test_gives_only_what_is_new(tmp_path: Path) -> None:
    folder = EventFolder(tmp_path / "later")
    assert folder.read() == {}
    (tmp_path / "later").mkdir()
    file = tmp_path / "later" / "events.out.tfevents.1"
    file.write_bytes(record(0, loss=1.0))
    assert folder.read()[Key("", "loss")].tolist() == [(0, 1000.0, 1.0)]
    assert folder.read() == {}
    with file.open("ab") as grown:
        grown.write(record(1, loss=0.5) + record(1, acc=0.5))
    assert {key.tag: len(new) for key, new in folder.read().items()} == {"loss": 1, "acc": 1}
    assert steps(folder, "loss") == [0, 1]


@pytest.mark.parametrize("count", [3, 200], ids=["one by one", "in bulk"])
def test_a_flipped_bit_costs_its_record_and_no_other(count: int, tmp_path: Path) -> None:
    records = [record(step, loss=0.5) for step in range(128, 128 + count)]
    hit, size = count // 2, len(records[0])
    for bit in range(12 * 8, size * 8):
        damaged = bytearray(b"".join(records))
        damaged[hit * size + bit // 8] ^= 1 << bit % 8
        stretch = read_stretch(bytes(damaged))
        assert stretch.corrupt == 1
        assert stretch.points["loss"]["step"].tolist() == [
            step for step in range(128, 128 + count) if step != 128 + hit
        ]
        assert set(stretch.points) == {"loss"}


def test_a_restart_takes_back_what_was_written_from_its_step_on(tmp_path: Path) -> None:
    with torch_writer(str(tmp_path), filename_suffix=".1") as summary:
        for step in range(100):
            summary.add_scalar("loss", 1.0, step)
            summary.add_scalar("old", 1.0, step)
    folder = EventFolder(tmp_path)
    folder.read()
    with torch_writer(str(tmp_path), purge_step=60, filename_suffix=".2") as summary:
        for step in range(60, 70):
            summary.add_scalar("loss", 0.5, step)
    changed = folder.read()
    assert steps(folder, "loss") == list(range(70))
    assert steps(folder, "old") == list(range(60))
    assert {key.tag for key in changed} == {"loss", "old"}
    assert_like_tensorboard(tmp_path)


def attempt(folder: Path, number: int, began: float) -> None:
    """What the worker leaves as an attempt begins."""
    name = retries.MARK.format(began, number)
    (folder / name).write_bytes(event_format.record(event_format.first_event(began)))


@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
def test_steps_that_an_attempt_does_again_replace_those_before(late: bool, tmp_path: Path) -> None:
    def at(time: float, first: int, end: int, **values: float) -> bytes:
        events = [event_format.event(time, step, values) for step in range(first, end)]
        return b"".join(map(event_format.record, events))

    file = tmp_path / "events.out.tfevents.{}"
    (tmp_path / "rank-1").mkdir()
    Path(str(file).format(1)).write_bytes(at(1.0, 0, 40, loss=1.0) + at(1.0, 0, 3, epoch=1.0))
    (tmp_path / "rank-1" / file.name.format(1)).write_bytes(at(1.0, 0, 40, loss=1.0))
    folder = EventFolder(tmp_path)
    folder.read()
    if not late:
        attempt(tmp_path, 2, 5.0)
    Path(str(file).format(2)).write_bytes(at(6.0, 30, 35, loss=0.5))
    folder.read()
    if late:
        attempt(tmp_path, 2, 5.0)
    attempt(tmp_path, 3, 7.0)
    Path(str(file).format(3)).write_bytes(at(8.0, 33, 34, loss=0.25))
    folder.read()
    assert steps(folder, "loss") == list(range(34))
    values = folder.points(Key("", "loss"))["value"].tolist()
    assert values == [1.0] * 30 + [0.5] * 3 + [0.25]
    assert steps(folder, "epoch") == [0, 1, 2]
    assert len(folder.points(Key("rank-1", "loss"))) == 40


def test_a_restart_within_one_stretch(tmp_path: Path) -> None:
    restart = event_format.event(5.0, 2, {}) + event_format._bytes_field(7, b"\x08\x01")
    data = b"".join(record(step, loss=1.0) for step in range(40))
    data += event_format.record(restart) + b"".join(record(step, loss=0.5) for step in range(2, 4))
    points = read_stretch(data).points["loss"]
    assert points["step"].tolist() == [0, 1, 2, 3]
    assert points["value"].tolist() == [1.0, 1.0, 0.5, 0.5]


def test_a_record_larger_than_a_stretch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distrain_nb.run.metrics.events.STRETCH_BYTES", 256)
    big = event_format.record(b"\x22" + event_format._varint(5000) + bytes(5000))
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(record(0, loss=1.0) + big + record(1, loss=0.5))
    folder = EventFolder(tmp_path)
    folder.read()
    assert steps(folder, "loss") == [0, 1]


def test_many_tags_of_one_length(tmp_path: Path) -> None:
    names = [f"layer{n:03}/norm" for n in range(300)]
    data = b"".join(record(step, **{name: step}) for step in range(5) for name in names)
    stretch = read_stretch(data)
    assert list(stretch.points) == names
    assert all(points["value"].tolist() == [0, 1, 2, 3, 4] for points in stretch.points.values())


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 40))
@settings(max_examples=several(300), deadline=None)
def test_nothing_that_a_file_can_hold_raises(noise: bytes, at: int, count: int) -> None:
    valid = b"".join(record(step, loss=1.0) for step in range(count))
    framed = event_format.record(noise)
    for data in (noise, framed, valid[:at] + noise + valid[at:], valid + framed * 20 + valid):
        assert read_stretch(data).consumed <= len(data)


def test_a_table_has_a_row_for_each_step(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(record(0, loss=1.0) + record(1, loss=0.5, acc=0.1) + record(1, acc=0.25))
    frame = table(tmp_path)
    assert list(frame.columns) == ["step", "loss", "acc"]
    assert frame["step"].tolist() == [0, 1]
    assert frame["acc"].tolist()[1] == 0.25
    assert math.isnan(frame["acc"][0])


def test_a_table_names_the_series_where_there_are_several(tmp_path: Path) -> None:
    for rank in (0, 1):
        folder = tmp_path / f"rank-{rank}"
        folder.mkdir()
        (folder / "events.out.tfevents.1").write_bytes(record(7, loss=float(rank)))
    frame = table(tmp_path)
    assert frame.to_dict("list") == {
        "step": [7, 7],
        "series": ["rank-0", "rank-1"],
        "loss": [0.0, 1.0],
    }
    assert table(tmp_path / "nothing").columns.tolist() == ["step"]


def test_floats_survive_as_they_are() -> None:
    assert read_stretch(record(0, loss=0.1)).points["loss"]["value"].tolist() == [0.1]
