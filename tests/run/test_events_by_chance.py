"""Event files and logs as chance writes them: every answer is JSON that a page can read."""

from __future__ import annotations

import contextlib
import json
import math
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest
from google_crc32c import value as fast_crc32c

from distrain_nb.errors import OptionError
from distrain_nb.run import Run, Store
from distrain_nb.run.log.index import Filter, LogIndex
from distrain_nb.run.log.reader import line_of
from distrain_nb.run.metrics.finite import to_json
from distrain_nb.run.metrics.records import read_stretch
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.pages.listing import Listing
from distrain_nb.saved import ansi
from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.metrics.crc32c import crc32c
from tests.fuzzing import flipped, mutated, rounds
from tests.run.records import record
from tests.run.torch_writer import torch_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "events.out.tfevents.1"
ODD = (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324)


def contents(data: bytes) -> Iterator[bytes]:
    while data:
        (size,) = struct.unpack_from("<Q", data)
        yield data[12 : 12 + size]
        data = data[16 + size :]


@cache
def events() -> tuple[bytes, ...]:
    """The records of all that PyTorch's writer can write."""
    with TemporaryDirectory() as folder:
        with torch_writer(folder) as summary:
            for step in range(3):
                summary.add_scalar("loss", step / 2, step)
                summary.add_histogram("weights", np.linspace(-1, 3, 50) + step, step)
                summary.add_image("digits", np.zeros((2, 2, 3), np.uint8), step, dataformats="HWC")
                summary.add_text("note", f"# step {step}", step)
            summary.add_hparams({"lr": 0.5, "name": "adam", "on": True}, {"final": 1.0})
        return tuple(
            each
            for file in sorted(Path(folder).rglob("*tfevents*"))
            for each in contents(file.read_bytes())
        )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path))
    store = Store()
    made = store.add("", "local", "", "")
    Status(State.RUNNING).write(made.folder)
    (made.folder / "tensorboard").mkdir(exist_ok=True)
    return Run(made)


def all_answers(run: Run) -> list[str]:
    """All that a page asks about what event files have, as it is sent."""
    said = [answer(run, path, {}) for path in ("summary", "metrics", "media", "log")]
    for row in said[2]["rows"]:
        with contextlib.suppress(OptionError):
            said.append(answer(run, "media", {name: row[name] for name in ("run", "tag", "kind")}))
    said += [each.as_json() for each in Listing().read([run])]
    return [to_json(each) for each in said]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["torch", pytest.param("tensorflow", marks=pytest.mark.slow)])
def test_numbers_that_json_has_not(run: Run, odd: float, kind: str) -> None:
    folder = run.folder / "tensorboard"
    if kind == "tensorflow":
        import tensorflow as tf

        with tf.summary.create_file_writer(str(folder)).as_default():
            tf.summary.histogram("weights", np.array([0.0, 1.0, odd]), step=0)
            tf.summary.histogram("weights", [0.0, 1.0], step=1)
    else:
        with torch_writer(str(folder)) as summary:
            summary.add_scalar("loss", odd, 0, walltime=odd)
            summary.add_histogram_raw("weights", 0, odd, 3, odd, odd, [1, odd, 2], [1, odd, 1], 0)
            summary.add_histogram_raw("weights", 0, 2, 3, 3, 5, [1, 2], [1, 2], 1)
            summary.add_text("note", "x", 0, walltime=odd)
            summary.add_hparams({"lr": odd}, {"final": odd})
    told = all_answers(run)
    assert any('"weights"' in each for each in told)
    drawn = answer(run, "media", {"kind": "histogram", "tag": "weights", "run": ""})
    assert 1 in drawn["steps"]
    assert all(map(math.isfinite, drawn["edges"]))
    if kind == "torch" and not math.isfinite(odd):
        index = json.loads(told[2])
        (values,) = index["hparams"].values()
        assert values["lr"] == {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(odd)]
        assert any("without finite numbers" in note for note in drawn["notes"])


def test_a_status_with_times_that_are_none(run: Run) -> None:
    text = (run.folder / "status.json").read_text()
    told = json.loads(text)
    told["times"] = {"running": math.nan, "starting": math.inf}
    (run.folder / "status.json").write_text(json.dumps(told))
    assert "NaN" not in "".join(all_answers(run))


# what a fuzzer has found, or is likely to be found by one
FOUND = [b"", b"\x09" + b"\0" * 8, b"\x2a\x00", b"\x2a\x02\x0a\x00", b"\xff" * 12, b"\x2a\x80"]


def test_event_files_by_chance_never_raise(run: Run) -> None:
    file = run.folder / "tensorboard" / FILE
    for chance in rounds(21, 400):
        made = [flipped(chance, chance.choice(events())) for _ in range(6)]
        made += [mutated(chance, events(), [*FOUND, struct.pack("<d", math.nan)])]
        data = b"".join(map(record, [*made, *FOUND]))
        data = data if chance.random() < 0.7 else flipped(chance, data)
        file.unlink(missing_ok=True)
        file.write_bytes(data)
        read_stretch(data)
        all_answers(run)


LINES = [
    b"1700000000.123\t0\to\thello\n", b"1.5\t3\te\t\x1b[31mred\x1b[0m \xff\n", b"2\t0\tO\t50%\n",
    b"2\t0\tO\t60%\n", b"nan\t0\to\tx\n", b"x\t0\to\tx\n", b"\t0\to\tx\n", b"1\t70000\to\tx\n",
    b"1\t0\tz\tx\n", b"\n", b"\t\t\t\n", b"1e999\t12\te\tTraceback (most recent call last):\n",
]  # fmt: skip


def test_logs_by_chance_never_raise(run: Run) -> None:
    path = run.folder / LOG_FILE
    for chance in rounds(22, 800):
        data = b"".join(mutated(chance, LINES, [b"\t", b"\n", b"\0", b"9" * 30]) for _ in range(9))
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        index = LogIndex(run.folder)
        index.update()
        for numbered in index.lines(index.rows(Filter())) + index.bars(Filter()):
            ansi.to_html(numbered.line.text)
        for path_ in ("log", "search", "first-error", "tracebacks"):
            to_json(answer(run, path_, {"text": "x"}))


def test_a_record_that_is_damaged_costs_no_other_line() -> None:
    for damaged in (b"", b"x", b"x\t0\to\ttext", b"nan\t0\to\ttext", b"1e999\t0\to\ttext"):
        line = line_of(damaged)
        assert (line.time, line.process, line.text[-4:]) == (0.0, 0, damaged[-4:].decode())


ESCAPES = ["\x1b[31m", "\x1b[0m", "\x1b[1;4;38;5;9m", "\x1b[2K", "\x1b]0;t\x07", "text", "<b>", "é"]
PIECES = ["9" * 5000, ";", "m", "\0", "[", '"', "&"]


def test_escapes_by_chance() -> None:
    for chance in rounds(23, 6_000):
        text = "".join(mutated(chance, ESCAPES, PIECES) for _ in range(5))
        parts = ansi.to_html(text).split("<span class=")
        assert all(part.count("<") == part.count("</span>") == 1 for part in parts[1:])
        assert "<" not in parts[0]


def test_a_code_of_many_digits_is_none() -> None:
    assert ansi.to_html(f"\x1b[{'9' * 5000}mtext") == "text"


def test_both_checksums_are_the_same() -> None:
    for chance in rounds(24, 6_000):
        data = chance.randbytes(chance.randrange(200))
        assert crc32c(data) == fast_crc32c(data)
