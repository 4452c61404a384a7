"""The text of main.py, and which of its lines are which lines of which cell."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from distrain_nb.program.gathering.arrange import PreludeItem
from distrain_nb.worker.rank.program import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass
class _Page:
    """Lines as they are written down, and where they come from."""

    lines: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    def add(self, text: str = "") -> None:
        self.lines += text.split("\n")

    def quote(self, text: str, label: str, line: int, *, is_cell: bool = False) -> None:
        """Add lines of a cell, of which the first is that line."""
        start = len(self.lines) + 1
        self.add(text)
        self.segments.append(Segment(start, len(self.lines), label, line, is_cell))


@dataclass(frozen=True)
class Body:
    """The cell's own code: its label, its lines from `line` on, and whether it awaits."""

    label: str
    text: str
    line: int
    awaits: bool


def assemble(
    futures: Sequence[str], imports: Sequence[str], items: Sequence[PreludeItem], body: Body
) -> tuple[str, tuple[Segment, ...]]:
    """Write the program: imports, definitions and values, then the cell."""
    page = _Page()
    page.add(f"# {body.label} as a program of its own, written by distrain-nb.")
    if body.awaits:
        page.add(
            "# It awaits at its top level: "
            "`python -m distrain_nb.worker.rank.program FOLDER` runs it."
        )
    if futures:
        page.add(f"from __future__ import {', '.join(futures)}")
    page.add()
    used = sorted({_kind(item) for item in items} & {"captured", "loaded", "restored"})
    own = [f"from distrain_nb.worker.rank.values import {', '.join(used)}"] if used else []
    for line in [*imports, *own]:
        page.add(line)
    _definitions(page, items)
    page.add()
    page.add(f"# {body.label}, which runs:")
    page.quote(body.text, body.label, body.line, is_cell=True)
    return "\n".join(page.lines) + "\n", tuple(page.segments)


def _definitions(page: _Page, items: Iterable[PreludeItem]) -> None:
    for kind, group in groupby(items, key=_kind):
        same = [*group]
        names = ", ".join(f'"{item.name}"' for item in same)
        if kind != "source":
            page.add()
        if kind == "captured":
            page.add(f"{', '.join(item.name for item in same)} = captured({names})")
        elif kind == "restored":
            page.add(f"restored({names})")
            for line in itertools.chain.from_iterable(item.imports for item in same):
                page.add(line)
        elif kind == "loaded":
            page.add("\n".join(f'loaded({item.model}, "{item.name}")' for item in same))
        elif kind == "literal":
            page.add("\n".join(f"{item.name} = {item.literal}" for item in same))
        for statement in (item.executed.statement for item in same if item.executed):
            page.add(f"\n# {statement.label}")
            page.quote(statement.text, statement.label, statement.line)


def _kind(item: PreludeItem) -> str:
    if item.executed is not None:
        return "source"
    if item.model:
        return "loaded"
    if not item.name.isidentifier():
        return "restored"
    return "captured" if item.literal is None else "literal"


def without_futures(text: str, tree: ast.Module) -> str:
    """Code whose `from __future__` imports became `pass`, line for line."""
    lines = text.split("\n")
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            head = lines[first].encode()[: node.col_offset].decode()
            tail = lines[last].encode()[node.end_col_offset :].decode()
            lines[first : last + 1] = [""] * (last - first + 1)
            lines[first] = f"{head}pass"
            lines[last] += tail
    return "\n".join(lines)
