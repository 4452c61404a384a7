"""Repairs of a layout as changes of a cell's text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Fix
from distrain_nb.layout.options import OPTIONS
from distrain_nb.layout.text import texts
from distrain_nb.layout.words import quoted
from distrain_nb.repairs import with_option

if TYPE_CHECKING:
    from distrain_nb.layout.layout import Layout


def in_cell(finding: Finding, layout: Layout) -> Finding:
    """Return a finding about *layout* whose repairs change the text of the cell.

    The repairs of *finding* change the layout. The cell has the layout as options.
    """
    before = texts(layout)
    fixes = tuple(
        Fix(fix.label, _cell_change(before, texts(fix.apply(layout)))) for fix in finding.fixes
    )
    return replace(finding, fixes=fixes)


def _cell_change(before: dict[str, str], after: dict[str, str]) -> Callable[[str], str]:
    """Return a change of a cell's text: from options with texts *before* to those *after*."""

    def apply(text: str) -> str:
        for option in OPTIONS:
            value = after.get(option.field, "")
            if value != before.get(option.field, ""):
                written = f"{option.names[0]} {quoted(value)}" if value else ""
                text = with_option(text, list(option.names), written)
        return text

    return apply
