"""The log keeps every line, and what is moving does not flood it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distrain_nb.run.log.reader import Line, LogReader, final_lines
from distrain_nb.worker.files import log
from distrain_nb.worker.files.log import LineSplitter, LogWriter


def written(folder: Path, records: bytes) -> list[Line]:
    writer = LogWriter(folder)
    writer.write(records)
    assert writer.close() == 0
    return list(LogReader(folder))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))), st.data())
def test_lines_survive_however_the_stream_is_cut(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], data: st.DataObject
) -> None:
    stream = "".join(line + "\n" for line in lines).encode()
    splitter, records = LineSplitter(3, "o"), b""
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        records, stream = records + splitter.feed(stream[:cut]), stream[cut:]
    records += splitter.finish()
    read = written(tmp_path_factory.mktemp("log"), records)
    assert [line.text for line in read] == lines
    assert all((line.process, line.stream, line.moving) == (3, "o", False) for line in read)


def test_a_last_line_without_an_end_is_kept(tmp_path: Path) -> None:
    splitter = LineSplitter(0, "e")
    records = splitter.feed(b"one\ntwo") + splitter.finish()
    assert [line.text for line in written(tmp_path, records)] == ["one", "two"]


def test_a_progress_bar_is_one_moving_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOVING_EVERY_S", 0.0)
    splitter, records = LineSplitter(0, "e"), b""
    for percent in range(0, 101, 20):
        records += splitter.feed(b"\r%d%%" % percent) + splitter.moving()
    records += splitter.feed(b"\nafter\n")
    lines = written(tmp_path, records)
    assert [line.text for line in lines if line.moving] == [
        "0%",
        "20%",
        "40%",
        "60%",
        "80%",
        "100%",
    ]
    assert [line.text for line in final_lines(lines)] == ["100%", "after"]


def test_a_progress_bar_between_two_looks_leaves_one_record(tmp_path: Path) -> None:
    splitter, records = LineSplitter(0, "e"), b""
    for step in range(10_000):
        records += splitter.feed(b"\rstep %d" % step) + splitter.moving()
    records += splitter.feed(b"\n")
    lines = written(tmp_path, records)
    assert final_lines(lines)[-1].text == "step 9999"
    assert len(lines) < 100


def test_windows_line_ends_and_odd_bytes(tmp_path: Path) -> None:
    records = LineSplitter(0, "o").feed(b"a\r\nb\tc\n\xff\xfe\n")
    assert [line.text for line in written(tmp_path, records)] == ["a", "b\tc", "\ufffd\ufffd"]


def test_a_reader_gives_each_line_once(tmp_path: Path) -> None:
    writer, splitter = LogWriter(tmp_path), LineSplitter(0, "o")
    writer.write(splitter.feed(b"one\ntwo\n"))
    reader = LogReader(tmp_path)
    assert [line.text for line in reader.read()] == ["one", "two"]
    writer.write(splitter.feed(b"three\n"))
    assert [line.text for line in reader.read()] == ["three"]
    assert not reader.read()
    writer.close()


def test_a_line_without_end_is_cut_not_kept_in_memory(tmp_path: Path) -> None:
    splitter = LineSplitter(0, "o")
    records = b"".join(splitter.feed(b"x" * (1 << 18)) for _ in range(12)) + splitter.finish()
    lines = written(tmp_path, records)
    assert sum(len(line.text) for line in lines) == 12 << 18
    assert len(lines) > 1


def test_beyond_what_can_be_held_the_loss_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = LogWriter(tmp_path)
    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(log, "HELD_AT_MOST", 1000)
    writer.write(b"x" * 900)
    with pytest.raises(log.LogLost, match="No space left"):
        writer.write(b"x" * 200)
    writer.write(b"x" * 50)
    assert writer.close() == 1150
