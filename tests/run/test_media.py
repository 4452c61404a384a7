"""Histograms, images, texts and hyperparameters, as each writer writes them."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorboardX

from distrain_nb.errors import OptionError
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.metrics.non_scalars import MOST_PIECES
from distrain_nb.run.pages.media import media
from distrain_nb.run.streams import Scalars
from tests.run.torch_writer import torch_writer

HPARAMS = {"lr": 0.5, "layers": 3, "optimizer": "adam", "nesterov": True}
PICTURE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
SAMPLES = np.linspace(-1.0, 3.0, 4_001)


def by_writer(writer: Any, folder: Path) -> None:
    with writer(str(folder)) as summary:
        for step in range(3):
            summary.add_histogram("weights", SAMPLES + step, step)
            summary.add_image("digits", PICTURE + step, step, dataformats="HWC")
            summary.add_text("note", f"# step {step}", step)
        summary.add_pr_curve("pr", np.array([0, 1]), np.array([0.1, 0.9]), 1)
        summary.add_hparams(HPARAMS, {"final": 1.0}, name="trial")


def by_torch(folder: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    class Named(SummaryWriter):
        def add_hparams(self, values: Any, metrics: Any, name: str) -> None:
            super().add_hparams(values, metrics, run_name=name)

    by_writer(Named, folder)


def by_tensorboardx(folder: Path) -> None:
    by_writer(tensorboardX.SummaryWriter, folder)


def by_tensorflow(folder: Path) -> None:
    import tensorflow as tf
    from tensorboard.plugins.hparams import api

    with tf.summary.create_file_writer(str(folder)).as_default():
        for step in range(3):
            tf.summary.histogram("weights", SAMPLES + step, step=step)
            tf.summary.image("digits", (PICTURE + step)[None], step=step)
            tf.summary.text("note", f"# step {step}", step=step)
    with tf.summary.create_file_writer(str(folder / "trial")).as_default():
        api.hparams(HPARAMS)


BY_TENSORFLOW = pytest.param(by_tensorflow, marks=pytest.mark.slow)


def ask(folder: Path, **query: Any) -> dict[str, Any]:
    words = {name: str(value) for name, value in query.items()}
    return media(Scalars(EventFolder(folder)), words)


def size_of(png: bytes) -> tuple[int, int]:
    return struct.unpack(">II", png[16:24])


@pytest.mark.parametrize("write", [by_torch, by_tensorboardx, BY_TENSORFLOW])
def test_what_a_writer_writes_besides_scalars_is_found(write: Any, tmp_path: Path) -> None:
    write(tmp_path)
    told = ask(tmp_path)
    assert set(told["hparams"]) == {"trial"}
    assert told["hparams"]["trial"] == HPARAMS
    rows = {row["kind"]: row for row in told["rows"]}
    assert set(rows) == {"histogram", "image", "text"}
    assert {(row["count"], row["last"], row["run"]) for row in rows.values()} == {(3, 2, "")}

    picture = ask(tmp_path, kind="image", tag=rows["image"]["tag"])
    assert (picture["form"], picture["step"]) == ("image/png", 2)
    assert size_of(base64.b64decode(picture["data"])) == (6, 4)
    note = ask(tmp_path, kind="text", tag=rows["text"]["tag"], at=1)
    assert (note["text"], note["step"]) == ("# step 1", 1)

    weights = ask(tmp_path, kind="histogram", tag=rows["histogram"]["tag"])
    assert weights["steps"] == [0, 1, 2]
    assert weights["edges"][0] == pytest.approx(-1, abs=0.2)
    assert weights["edges"][-1] == pytest.approx(5, abs=0.2)
    centres = np.convolve(weights["edges"], [0.5, 0.5], "valid")
    for step, counts in enumerate(weights["counts"]):
        assert sum(counts) == pytest.approx(len(SAMPLES))
        assert np.average(centres, weights=counts) == pytest.approx(1 + step, abs=0.1)


def test_what_can_t_be_shown_is_said_with_its_tag_and_kind(tmp_path: Path) -> None:
    by_torch(tmp_path)
    assert ask(tmp_path)["notes"] == ["not shown: pr (PR curve, 1 value)"]
    with pytest.raises(OptionError, match="invalid kind 'audio'"):
        ask(tmp_path, kind="audio")
    with pytest.raises(OptionError, match="no image 'other' of this run"):
        ask(tmp_path, kind="image", tag="other")
    with pytest.raises(OptionError, match="invalid at 3: expected a whole number, 0 to 2"):
        ask(tmp_path, kind="image", tag="digits", at=3)


def test_of_many_pieces_some_are_remembered(tmp_path: Path) -> None:
    with torch_writer(str(tmp_path)) as summary:
        for step in range(2 * MOST_PIECES + 10):
            summary.add_text("note", str(step), step)
    (row,) = ask(tmp_path)["rows"]
    assert MOST_PIECES <= row["count"] < 2 * MOST_PIECES
    assert row["last"] == 2 * MOST_PIECES + 9
    for at, step in ((0, 0), (1, 2), (row["count"] - 1, row["last"])):
        note = ask(tmp_path, kind="text", tag=row["tag"], at=at)
        assert (note["step"], note["text"]) == (step, str(step))


def test_a_restart_takes_back_what_came_after_its_step(tmp_path: Path) -> None:
    with torch_writer(str(tmp_path), filename_suffix=".1") as summary:
        for step in range(10):
            summary.add_text("note", "first", step)
    with torch_writer(str(tmp_path), purge_step=6, filename_suffix=".2") as summary:
        summary.add_text("note", "second", 6)
    (row,) = ask(tmp_path)["rows"]
    assert (row["count"], row["last"]) == (7, 6)
    assert ask(tmp_path, kind="text", tag=row["tag"])["text"] == "second"


def test_a_picture_that_is_corrupt_is_told_of(tmp_path: Path) -> None:
    with torch_writer(str(tmp_path)) as summary:
        noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        summary.add_image("noise", noise, 7, dataformats="HWC")
        summary.add_scalar("loss", 1.0, 7)
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert "step 7 can't be shown" in ask(tmp_path, kind="image", tag="noise")["note"]
