"""What a cell shows in a notebook it says in a run too, and what asks the user is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.errors import RunFailed


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        ("x = 'a'\nx * 3", ["'aaa'"]),
        ("x = 'a'\nx * 3;", []),
        ("print('b')", ["b"]),
        ("import asyncio\nasync def f(): return 4\nawait f()", ["4"]),
        ("from IPython.display import display\ndisplay(5)", ["5", "5"]),
    ],
)
def test_the_last_expression_is_said_by_the_first_rank(
    home: Path, cell: str, lines: list[str]
) -> None:
    each = "print" in cell
    run = api.submit(cell, wait=True, ranks_per_replica=2)
    assert sorted(line.text for line in run.lines()) == lines * (2 if each else 1)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("name = input('who? ')", "EOFError: input('who? ') has nobody to ask in a run"),
        ("breakpoint()", "RuntimeError: breakpoint() has nobody to ask in a run"),
    ],
)
def test_a_question_fails_with_what_to_do_instead(home: Path, cell: str, says: str) -> None:
    with pytest.raises(RunFailed) as failed:
        api.submit(cell, wait=True)
    assert says in str(failed.value)
