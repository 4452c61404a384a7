"""Shows the problem that keeps a cell from running below it, with its place in the cell and the
repairs.

Of an option such as `--env HF_TOKEN={token}` a magic is given the value of `token`. What is shown
is the text as its author wrote it, where that can be told, and never the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError, RunCancelled, RunFailed

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from distrain_nb.ui.problem import Cells

_CELL, _LINE = "%%distrain", "%distrain"
_PLACEHOLDER = r"\{.*?\}+|\$+[\w.]+"
_EMPTY_LINES = r"\A(?:[ \t]*\n)+"


@contextmanager
def show_problems(line: str, cell: str | None, shell: InteractiveShell) -> Iterator[None]:
    """Show errors of the block, but not the end of a run, which its own view shows."""
    try:
        yield
    except (RunFailed, RunCancelled):
        raise
    except DistrainError as error:
        from distrain_nb.ui.problem_panel import show_problem

        cells = _cells(line, cell, shell)
        error.args = (cells.located(str(error)),)  # a notebook's file keeps it
        show_problem(error, cells)
        raise


def _cells(line: str, cell: str | None, shell: InteractiveShell) -> Cells:
    """Return the text that is running, as its author sees it, and what was executed before."""
    from distrain_nb.program.notebook.cells import label
    from distrain_nb.ui.problem import Cells

    sources = shell.history_manager.input_hist_raw
    cells = {label(number): source for number, source in enumerate(sources)}
    own_label = label(len(sources) - 1)
    for text, options in _candidates(sources[-1], cell):
        values = _values(options, line)
        if values is not None:
            placeholders = [place for place, value in values if place != value]
            return Cells(text, own_label, cells, placeholders, _secrets(line, options, values))
    return Cells(f"{_LINE} {line}" if cell is None else f"{_CELL} {line}\n{cell}", own_label, cells)


def _candidates(source: str, cell: str | None) -> Iterator[tuple[str, str]]:
    """Yield the magics of a cell that may be running, each with the options of its line."""
    from distrain_nb.repairs import join_lines

    if cell is None:
        for line in join_lines(source).split("\n"):
            _, magic, options = line.partition(_LINE)
            if magic:
                yield magic + options, options
        return
    text = re.sub(_EMPTY_LINES, "", source)
    head, _, code = text.partition("\n")
    if head.startswith(_CELL) and code.rstrip("\n") == cell.rstrip("\n"):
        yield text, head.removeprefix(_CELL)


def _values(options: str, line: str) -> list[tuple[str, str]] | None:
    """Return the placeholders of options, and what stands for them in a magic's line; None for
    another line than theirs."""
    options, line = " ".join(options.split()), " ".join(line.split())
    first, *texts = re.split(_PLACEHOLDER, options)
    if not line.startswith(first) or not (texts or line == first):
        return None
    values, at = [], len(first)
    for number, text in enumerate(texts, 1):
        end = line.find(text, at) if number < len(texts) else len(line) - len(text)
        if end < at or not line.endswith(text, at, end + len(text)):
            return None
        values.append(line[at:end])
        at = end + len(text)
    return [*zip(re.findall(_PLACEHOLDER, options), values, strict=True)]


def _secrets(line: str, options: str, values: Iterable[tuple[str, str]]) -> set[str]:
    """Return the values of `--env`, and the parts of one that came apart because it isn't
    quoted."""
    from distrain_nb.secrets import env_values

    written, expanded = [*env_values(options)], {*env_values(line)}
    for place, value in values:
        is_secret = place != value and any(place in word for word in written)
        if is_secret and not any(value in word for word in expanded):
            expanded.update(value.split())
    return expanded
