"""Each promise of `docs/security.md` names the test that holds it, and that test is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
PROMISES = [line for line in LINES if re.match(r"\| (?!---|promise |a secret \||what \|)", line)]


def named(text: str) -> Iterator[Path]:
    """The tests that a text names: a name alone is in the folder of the path before it."""
    folder = ROOT
    for path in re.findall(
        r"`((?:[\w/]+/)?(?:test_\w+|fuzzing)(?:\.test)?\.(?:py|js)|tests/[\w/]+/)`", text
    ):
        folder = (ROOT / path).parent if "/" in path else folder
        yield ROOT / path if "/" in path else folder / path


def test_there_are_as_many_as_tables_have() -> None:
    assert len(PROMISES) > 25


@pytest.mark.parametrize("promise", PROMISES, ids=lambda line: line[2:42])
def test_a_promise_names_its_test(promise: str) -> None:
    assert [*named(promise)]


def test_every_test_is_there() -> None:
    paths = [path for line in LINES for path in named(line)]
    assert [path for path in paths if not path.exists()] == []
