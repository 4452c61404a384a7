"""Counts and times are as the page says them: page/tests/words.test.js reads the same examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distrain_nb.run.summary import duration, plural

EXAMPLES = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("count", "noun", "words"), EXAMPLES["plural"])
def test_plural(count: int, noun: str, words: str) -> None:
    assert plural(count, noun) == words


@pytest.mark.parametrize(("seconds", "words"), EXAMPLES["duration"])
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words
