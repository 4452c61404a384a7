"""Searching a log finds what reading all of it would."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.errors import OptionError
from distrain_nb.run.log import expression, matching, reader
from distrain_nb.run.log import search as module
from distrain_nb.run.log.index import Filter, LogIndex
from distrain_nb.run.log.matching import SearchTerm
from distrain_nb.run.log.search import SearchProgress, first_error, search
from distrain_nb.worker.files.folder import LOG_FILE
from tests.fuzzing import several
from tests.run.logs import WRITERS, Printing, standing

LETTERS = "aAé1\t "
lines = st.lists(st.tuples(st.sampled_from(WRITERS), st.text(LETTERS, max_size=8)), max_size=20)
filters = st.sampled_from([Filter(), Filter(frozenset({0, 3})), Filter(stream="e")])


def expected(folder: Path, only: Filter, wanted: SearchTerm) -> list[int]:
    pattern = wanted.text if wanted.regex else re.escape(wanted.text)
    compiled = re.compile(pattern, 0 if wanted.case else re.IGNORECASE)
    passing = [
        line
        for line in standing(folder)
        if (only.processes is None or line.process in only.processes)
        and line.stream.startswith(only.stream)
    ]
    return [row for row, line in enumerate(passing) if compiled.search(line.text)]


def finished(log: LogIndex, only: Filter, wanted: SearchTerm, near: int = 0) -> SearchProgress:
    """As a page asks: until all has been searched."""
    while not (progress := search(log, only, wanted, near)).done:
        assert 0 <= progress.searched <= 1
    return progress


def every(log: LogIndex, only: Filter, wanted: SearchTerm, near: int = 0) -> list[int]:
    """As a user steps from match to match, until the first comes again."""
    total = finished(log, only, wanted, near).total
    rows = [search(log, only, wanted, 0).row]
    while len(rows) < total:
        progress = search(log, only, wanted, rows[-1] or 0, 1)
        assert progress.place == len(rows)
        rows.append(progress.row)
    if rows == [None]:
        return []
    assert search(log, only, wanted, rows[-1] or 0, 1).row == rows[0]
    assert search(log, only, wanted, rows[0] or 0, -1).row == rows[-1]
    return [row for row in rows if row is not None]


@settings(deadline=None, max_examples=several(60))
@given(
    lines,
    st.text(LETTERS, min_size=1, max_size=3),
    st.booleans(),
    filters,
    st.integers(0, 9),
    st.sampled_from([0, 3, 200]),
)
def test_text_is_found_wherever_it_stands(
    tmp_path_factory: pytest.TempPathFactory,
    printed: list[tuple[tuple[int, str], str]],
    text: str,
    case: bool,
    only: Filter,
    near: int,
    few: int,
) -> None:
    log = Printing(tmp_path_factory.mktemp("log"))
    for writer, line in printed:
        log.print(line + "\n", *writer)
    index = LogIndex(log.folder)
    index.update()
    wanted = SearchTerm(text, case=case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_FEW", few)
        assert every(index, only, wanted, near) == expected(log.folder, only, wanted)


PARTS = [
    "a",
    "S",
    "k",
    "aS1",
    "é",
    r"\d",
    "1?",
    "(a|k)",
    "^",
    "$",
    r"\bk",
    "(?i:K)",
    r"\n",
    "[aé]+",
]


@settings(deadline=None, max_examples=several(200))
@given(
    st.lists(st.text("aAkKsS1é\u017f\u212a ", max_size=6), min_size=1, max_size=6),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    st.sampled_from([0, re.IGNORECASE]),
)
def test_lines_without_what_each_match_has_are_not_tried(
    printed: list[str], parts: list[str], flags: int
) -> None:
    """And those that are tried are all that match."""
    pattern = "".join(parts)
    piece = "".join(f"1.5\t0\to\t{line}\n" for line in printed).encode()
    literal, folds = expression.required(pattern, flags)
    matches = re.compile(pattern, flags).search
    tried = list(expression.with_literal(piece, literal, folds)) if literal else None
    every_line = list(expression.every_line(piece))
    assert len(every_line) == len(printed)
    if tried is not None:
        assert [it for it in tried if matches(it[1])] == [it for it in every_line if matches(it[1])]


@pytest.mark.parametrize(
    ("pattern", "flags", "literal"),
    [
        (r"loss=0\.7\d+ ", 0, b"loss=0.7"),
        ("(?i)NaN loss", 0, b"nan lo"),
        ("a|b", 0, b""),
        ("(?:abc)?d", 0, b"d"),
        (r"x{2}yy", 0, b"yy"),
        ("(?x) a b # c", 0, b"ab"),
    ],
)
def test_the_longest_text_that_each_match_has(pattern: str, flags: int, literal: bytes) -> None:
    assert expression.required(pattern, flags)[0] == literal


@pytest.fixture
def log(tmp_path: Path) -> Printing:
    log = Printing(tmp_path)
    for step in range(300):
        log.print(f"Step {step}: loss={1 / (step + 1):.3f} \u00c4\n", WRITERS[step % 4][0])
        log.print(f"warmup {step}%\r", 12)
    log.print("\n", 12)
    return log


@pytest.mark.parametrize(
    "text", [r"^step 1\d+:", r"0\.0+\d \u00e4$", r"loss=(?!0)", r"\d{9}", r"\to\t", r"^$", "."]
)
@pytest.mark.parametrize("only", [Filter(), Filter(frozenset({0})), Filter(frozenset({7}))])
@pytest.mark.parametrize("case", [False, True])
def test_expressions_are_of_the_text_alone(
    log: Printing, text: str, only: Filter, case: bool
) -> None:
    index = LogIndex(log.folder)
    index.update()
    wanted = SearchTerm(text, regex=True, case=case)
    assert every(index, only, wanted) == expected(log.folder, only, wanted)


def test_a_log_is_searched_slice_by_slice(log: Printing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE_S", 0)
    monkeypatch.setattr(matching, "EXPRESSION_S", 0)
    monkeypatch.setattr(reader, "PIECE_BYTES", 500)
    index = LogIndex(log.folder)
    index.update()
    wanted = SearchTerm("LOSS=0.01")
    assert not search(index, Filter(), wanted, 100).done
    for only in (Filter(), Filter(frozenset({3}))):
        assert every(index, only, wanted, 100) == expected(log.folder, only, wanted)


def test_the_first_match_from_the_line_in_sight_comes_first(
    log: Printing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before what comes earlier in the log has been searched."""
    monkeypatch.setattr(reader, "PIECE_BYTES", 500)
    monkeypatch.setattr(module, "SLICE_S", 1e-9)
    monkeypatch.setattr(module.time, "monotonic", iter(range(10_000)).__next__)
    index = LogIndex(log.folder)
    index.update()
    progress = search(index, Filter(), SearchTerm("loss"), 200)
    while progress.row is None:
        progress = search(index, Filter(), SearchTerm("loss"), 200)
    assert (progress.row, progress.done) == (200, False)


@pytest.mark.parametrize("regex", [False, True])
def test_a_log_that_has_grown_is_searched_on(log: Printing, regex: bool) -> None:
    index = LogIndex(log.folder)
    index.update()
    wanted = SearchTerm("step 29", regex)
    assert finished(index, Filter(), wanted, 150).total == 11
    log.print("Step 299, again\n")
    index.update()
    assert finished(index, Filter(), wanted, 150).total == 12


def test_a_log_that_was_cut_is_searched_anew(tmp_path: Path) -> None:
    log = Printing(tmp_path)
    for number in range(9):
        log.print(f"line {number}\n")
    index = LogIndex(tmp_path)
    index.update()
    assert finished(index, Filter(), SearchTerm("line")).total == 9
    path = tmp_path / LOG_FILE
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    index.update()
    assert finished(index, Filter(), SearchTerm("line")).total == 4


def test_a_search_keeps_no_index_in_memory(log: Printing) -> None:
    index = LogIndex(log.folder)
    index.update()
    finished(index, Filter(), SearchTerm("loss"))
    kept = weakref.ref(index)
    del index
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("lines", [3, 3_000])
def test_many_matches_are_found_as_few_are(tmp_path: Path, lines: int) -> None:
    log = Printing(tmp_path)
    for number in range(lines):
        log.print(f"x {number}" + (" \x1b[31mx\x1b[0m" if number % 1000 == 7 else "") + "\n")
    index = LogIndex(tmp_path)
    index.update()
    assert finished(index, Filter(), SearchTerm("x"), 1).total == lines
    assert finished(index, Filter(), SearchTerm("X", case=True)).total == 0


def test_words_that_speak_of_an_error(tmp_path: Path) -> None:
    log = Printing(tmp_path)
    for line in ("no ERRORS", "MYERROR", "one ERROR: x", "ValueError: y"):
        log.print(f"{line}\n")
    index = LogIndex(tmp_path)
    index.update()
    assert first_error(index, Filter()) == 2
    log.print("Traceback (most recent call last):\n")
    index.update()
    assert first_error(index, Filter()) == 4


def test_what_a_bar_showed_on_its_way_is_not_found(log: Printing) -> None:
    index = LogIndex(log.folder)
    index.update()
    assert every(index, Filter(), SearchTerm("warmup 7%")) == []
    assert len(every(index, Filter(), SearchTerm("warmup 299%"))) == 1


def test_a_broken_expression_is_told_where(log: Printing) -> None:
    with pytest.raises(OptionError, match=r"'a\(b'.* at position 1"):
        search(LogIndex(log.folder), Filter(), SearchTerm("a(b", regex=True), 0)


@pytest.mark.slow  # searches until it is given up
def test_an_expression_without_end_is_given_up(log: Printing) -> None:
    log.print("a" * 60 + "\n")
    index = LogIndex(log.folder)
    index.update()
    with pytest.raises(OptionError, match="takes too long"):
        every(index, Filter(), SearchTerm("(a+)+$[!?]", regex=True))


@pytest.mark.parametrize(
    "text", ["(a|b)|" * 8_500, "[a-z]" * 10_000, "(" * 5_000, "x" * 100_000], ids=len
)
@pytest.mark.parametrize("regex", [False, True])
def test_what_takes_long_to_compile_is_refused(log: Printing, text: str, regex: bool) -> None:
    with pytest.raises(OptionError, match=r"characters long; a search takes 1,000") as refused:
        search(LogIndex(log.folder), Filter(), SearchTerm(text, regex), 0)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "text", [r"(?i)[\0-\U0010ffff]" + r"[\0-\uffff]" * 80, "(a|" * 300, r"(?<=a*)"]
)
def test_nothing_is_compiled_where_a_page_waits(
    log: Printing, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = LogIndex(log.folder)
    index.update()
    monkeypatch.setattr(re, "compile", None)
    try:
        search(index, Filter(), SearchTerm(text, regex=True), 0)
    except OptionError as refused:
        assert len(str(refused)) < 300


def test_what_stands_across_colours_is_found(tmp_path: Path) -> None:
    log = Printing(tmp_path)
    for line in ("plain", "a ne\x1b[1;31med\x1b[0mle", "31m", "\x1b[38:2::1:2:3mred"):
        log.print(f"{line}\n")
    index = LogIndex(tmp_path)
    index.update()
    for regex in (False, True):
        found = [every(index, Filter(), SearchTerm(text, regex)) for text in ("need", "31m")]
        assert found == [[1], [2]]
