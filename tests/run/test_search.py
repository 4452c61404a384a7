"""Searching a log finds what reading all of it would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.errors import OptionError
from distrain_nb.run.log import search as module
from distrain_nb.run.log.index import Filter, LogIndex
from distrain_nb.run.log.search import Matches, SearchTerm, search
from tests.fuzzing import several
from tests.run.logs import WRITERS, Printing, standing

LETTERS = "aAé1\t "
lines = st.lists(st.tuples(st.sampled_from(WRITERS), st.text(LETTERS, max_size=8)), max_size=20)
filters = st.sampled_from([Filter(), Filter(frozenset({0, 3})), Filter(stream="e")])


def expected(folder: Path, only: Filter, term: SearchTerm) -> list[int]:
    pattern = term.text if term.regex else re.escape(term.text)
    compiled = re.compile(pattern, 0 if term.case else re.IGNORECASE)
    passing = [
        line
        for line in standing(folder)
        if (only.processes is None or line.process in only.processes)
        and line.stream.startswith(only.stream)
    ]
    return [row for row, line in enumerate(passing) if compiled.search(line.text)]


def every(log: LogIndex, only: Filter, term: SearchTerm, limit: int) -> list[int]:
    """As a page asks: on from where the last answer ended."""
    found, rows = Matches([], -1, 0, False), []
    while not found.done:
        after = found.searched
        found = search(log, only, term, after, limit)
        assert found.done or found.searched > after
        rows += found.rows
    return rows


@settings(deadline=None, max_examples=several(60))
@given(lines, st.text(LETTERS, min_size=1, max_size=3), st.booleans(), filters)
def test_text_is_found_wherever_it_stands(
    tmp_path_factory: pytest.TempPathFactory,
    printed: list[tuple[tuple[int, str], str]],
    text: str,
    case: bool,
    only: Filter,
) -> None:
    log = Printing(tmp_path_factory.mktemp("log"))
    for writer, line in printed:
        log.print(line + "\n", *writer)
    index = LogIndex(log.folder)
    index.update()
    term = SearchTerm(text, case=case)
    assert every(index, only, term, 3) == expected(log.folder, only, term)


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
    term = SearchTerm(text, regex=True, case=case)
    assert every(index, only, term, 1_000) == expected(log.folder, only, term)


def test_a_log_is_searched_stretch_by_stretch(
    log: Printing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STRETCH_BYTES", 8_000)
    monkeypatch.setattr("distrain_nb.run.log.reader.PIECE_BYTES", 500)
    index = LogIndex(log.folder)
    index.update()
    for term in (SearchTerm("LOSS=0.01"), SearchTerm("LOSS=0.01", regex=True)):
        for only in (Filter(), Filter(frozenset({3}))):
            assert every(index, only, term, 4) == expected(log.folder, only, term)
    assert not search(index, Filter(), SearchTerm("loss"), -1, 1_000).done


def test_what_a_bar_showed_on_its_way_is_not_found(log: Printing) -> None:
    index = LogIndex(log.folder)
    index.update()
    assert every(index, Filter(), SearchTerm("warmup 7%"), 10) == []
    assert len(every(index, Filter(), SearchTerm("warmup 299%"), 10)) == 1


def test_a_broken_expression_is_told_where(log: Printing) -> None:
    with pytest.raises(OptionError, match=r"'a\(b'.* at position 1"):
        search(LogIndex(log.folder), Filter(), SearchTerm("a(b", regex=True), -1, 10)


def test_an_expression_without_end_is_given_up(log: Printing) -> None:
    log.print("a" * 60 + "\n")
    index = LogIndex(log.folder)
    index.update()
    with pytest.raises(OptionError, match="takes too long"):
        every(index, Filter(), SearchTerm("(a+)+$!", regex=True), 10)


@pytest.mark.parametrize(
    "text", ["(a|b)|" * 8_500, "[a-z]" * 10_000, "(" * 5_000, "x" * 100_000], ids=len
)
@pytest.mark.parametrize("regex", [False, True])
def test_what_takes_long_to_compile_is_refused(log: Printing, text: str, regex: bool) -> None:
    with pytest.raises(OptionError, match=r"characters long; a search takes 1,000") as refused:
        search(LogIndex(log.folder), Filter(), SearchTerm(text, regex), -1, 10)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "text", [r"(?i)[\0-\U0010ffff]" + r"[\0-\uffff]" * 80, "(a|" * 300, r"(?<=a*)"]
)
def test_nothing_is_compiled_where_a_page_waits(
    log: Printing, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = LogIndex(log.folder)
    index.update()
    monkeypatch.setattr(module.re, "compile", None)
    try:
        search(index, Filter(), SearchTerm(text, regex=True), -1, 10)
    except OptionError as refused:
        assert len(str(refused)) < 300


def test_what_stands_across_colours_is_found(tmp_path: Path) -> None:
    log = Printing(tmp_path)
    for line in ("plain", "a ne\x1b[1;31med\x1b[0mle", "31m", "\x1b[38:2::1:2:3mred"):
        log.print(f"{line}\n")
    index = LogIndex(tmp_path)
    index.update()
    for regex in (False, True):
        found = [
            search(index, Filter(), SearchTerm(text, regex), -1, 9).rows for text in ("need", "31m")
        ]
        assert found == [[1], [2]]
