"""The index of a log gives the lines that reading all of it would."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.run.log.index import Filter, LogIndex
from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.log import LineSplitter
from tests.fuzzing import several
from tests.run.logs import WRITERS, Printing, left_moving, standing

EVERY = Filter()

prints = st.lists(
    st.tuples(st.sampled_from(WRITERS), st.text("ab\t\r\n\xff€", max_size=12)), max_size=30
)


def all_lines(index: LogIndex, only: Filter = EVERY) -> list[object]:
    return [each.line for each in index.lines(index.rows(only))]


@settings(deadline=None, max_examples=several(60))
@given(prints, st.data())
def test_lines_are_those_of_the_log_however_it_grows(
    tmp_path_factory: pytest.TempPathFactory, printed: list[object], data: st.DataObject
) -> None:
    whole, grown = Printing(tmp_path_factory.mktemp("whole")), tmp_path_factory.mktemp("grown")
    for (process, stream), text in printed:
        whole.print(text, process, stream)
    records = (whole.folder / LOG_FILE).read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(records)), max_size=4).map(sorted))
    index = LogIndex(grown)
    for begin, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        with (grown / LOG_FILE).open("ab") as log:
            log.write(records[begin:end])
        assert index.update() == len(standing(grown))
        index.rows(Filter(stream="o"))
    lines = standing(whole.folder)
    assert all_lines(index) == lines
    assert [each.line for each in index.bars(EVERY)] == left_moving(whole.folder)
    for only in (Filter(frozenset({0, 12})), Filter(stream="o"), Filter(frozenset({0}), "e")):
        assert all_lines(index, only) == [
            line
            for line in lines
            if (only.processes is None or line.process in only.processes)
            and line.stream.startswith(only.stream)
        ]


def test_a_record_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    log = Printing(tmp_path)
    log.write(b"1700000000.000\t0\to\t" + b"x" * 3_000_000 + b"\n")
    log.print("after\n")
    index = LogIndex(tmp_path)
    assert index.update() == 2
    assert [len(line.text) for line in all_lines(index)] == [3_000_000, 5]


@pytest.mark.parametrize(
    "broken",
    [b"", b"text", b"\t\t\t", b"1.0\tx\to\t", b"1.0\t99999\to\t", b"1.0\t1\tq\t", b"1\t2\n3"],
)
def test_what_is_no_record_is_left_out(tmp_path: Path, broken: bytes) -> None:
    log = Printing(tmp_path)
    log.print("before\n")
    log.write(broken + b"\n")
    log.print("after\n")
    index = LogIndex(tmp_path)
    assert index.update() == 2
    assert [line.text for line in all_lines(index)] == ["before", "after"]


def test_numbers_stay_while_the_log_grows(tmp_path: Path) -> None:
    log, index = Printing(tmp_path), LogIndex(tmp_path)
    assert (index.update(), index.lines([]), index.bars(EVERY)) == (0, [], [])
    log.print("10%\r")
    log.print("one\n", 3)
    assert index.update() == 1
    assert [each.line.text for each in index.bars(EVERY)] == ["10%"]
    assert index.bars(Filter(stream="e")) == []
    log.print("20%\r100%\n")
    assert index.update() == 2
    assert [(each.number, each.line.text) for each in index.lines([0, 1])] == [
        (0, "one"),
        (1, "100%"),
    ]
    assert index.bars(EVERY) == []


def test_a_log_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    log, index = Printing(tmp_path), LogIndex(tmp_path)
    log.print("one\ntwo\n")
    assert index.update() == 2
    (tmp_path / LOG_FILE).unlink()
    assert index.update() == 0
    Printing(tmp_path).print("three\n")
    assert index.update() == 1
    assert [line.text for line in all_lines(index)] == ["three"]


def big_log(folder: Path, lines: int) -> Path:
    text = "".join(f"step {number}: loss=0.123456 lr=0.001\n" for number in range(lines))
    with (folder / LOG_FILE).open("wb") as log:
        log.write(LineSplitter(0, "o").feed(text.encode()))
    return folder


def test_an_index_is_small(tmp_path: Path) -> None:
    lines = 300_000
    index = LogIndex(big_log(tmp_path, lines))
    tracemalloc.start()
    index.update()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 * lines


def test_reading_again_costs_what_is_new(tmp_path: Path) -> None:
    log = Printing(big_log(tmp_path, 100_000))
    index = LogIndex(tmp_path)
    index.update()
    size = (tmp_path / LOG_FILE).stat().st_size
    before = bytes_read()
    log.print("new\n")
    assert index.update() == 100_001
    assert [each.line.text for each in index.lines(index.rows(EVERY)[-2:])][-1] == "new"
    assert bytes_read() - before < size / 20


def bytes_read() -> int:
    """By this process, ever."""
    counters = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in counters)["rchar"])


def test_many_threads_ask_while_it_grows(tmp_path: Path) -> None:
    log, index = Printing(tmp_path), LogIndex(tmp_path)

    def ask(turn: int) -> list[str]:
        index.update()
        rows = index.rows(Filter(frozenset({turn % 2 * 3})))
        return [each.line.text for each in index.lines(rows)]

    with ThreadPoolExecutor(4) as pool:
        answers = []
        for step in range(60):
            log.print(f"{step}\n" * 20, process=step % 2 * 3)
            answers.append(pool.submit(ask, step))
    for turn, answer in enumerate(answers):
        steps = [f"{step}" for step in range(turn % 2, 60, 2) for _ in range(20)]
        assert answer.result() == steps[: len(answer.result())]
        assert len(answer.result()) >= 20 * (turn // 2 + 1)


def test_a_log_that_is_cut_and_grows_again_between_two_looks_is_read_anew(tmp_path: Path) -> None:
    """As a carrier does that goes on where another was killed."""
    log, index = tmp_path / LOG_FILE, LogIndex(tmp_path)
    kept = LineSplitter(0, "o").feed(b"kept\n")
    log.write_bytes(kept + LineSplitter(0, "o").feed(b"not yet written down\n"))
    assert index.update() == 2
    with log.open("r+b") as file:
        file.truncate(len(kept))
        file.seek(len(kept))
        file.write(LineSplitter(1, "e").feed(b"one\ntwo\nthree and some more\n"))
    assert index.update() == 4
    assert all_lines(index) == standing(tmp_path)
