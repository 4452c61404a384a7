"""Tables of runs and trials: text in columns, and HTML."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from distrain_nb.escapes import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def as_text(headings: Sequence[str], rows: Iterable[Sequence[str]], more: str) -> str:
    """Return rows below their headings, in columns, and `more` below them, for a terminal too."""
    listed = [[plain(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in listed
    )
    return "\n".join(filter(None, (*lines, more)))


def table_html(
    headings: Iterable[str],
    rows: Iterable[Sequence[str]],
    about: Iterable[tuple[str, str, bool]],
    state: int,
    kind: str = "",
) -> str:
    """Return a table of runs or trials.

    `about` has the state, the cause and whether it is the best for each row, `state` is the column
    of its cell, and `kind` a class of the table.
    """
    heads = "".join(f'<th scope="col">{_breaking(heading)}</th>' for heading in headings)
    body = "".join(_row_html(row, *facts, state) for row, facts in zip(rows, about, strict=False))
    return (
        f'<table class="dn-table{kind}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _breaking(name: str) -> str:
    """Return the HTML of a name that may go on in another line behind `.`, `/` and `_`."""
    return re.sub(r"([./_])", r"\1<wbr>", html.escape(name))


def _row_html(row: Sequence[str], state: str, cause: str, best: bool, column: int) -> str:
    cells = [f"<td>{html.escape(cell)}</td>" for cell in row]
    why = f' title="{html.escape(cause)}"' if cause else ""
    cells[column] = f'<td class="dn-state"{why}>{html.escape(row[column])}</td>'
    mark = ' class="dn-top"' if best else ""
    return f'<tr data-state="{state}"{mark}>{"".join(cells)}</tr>'
