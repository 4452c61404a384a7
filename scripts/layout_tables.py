"""Writes the generated tables of `docs/layouts.md`: rules, options, sources.

    python scripts/layout_tables.py            # rewrites the file

Each table stands between two comments with its name; what is outside of them is left alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.layout import OPTIONS, PLACES
from distrain_nb.layout.catalog import TABLES, Catalog
from distrain_nb.layout.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAGE = Path(__file__).parents[1] / "docs" / "layouts.md"


def rules() -> str:
    """Every rule with its severity, where it holds, what it says, and its sources."""
    return _table(
        ("code", "severity", "on", "what must hold", "source"),
        (
            (
                f"`{rule.code}`",
                str(rule.severity),
                "everywhere" if rule.places == PLACES else ", ".join(rule.places),
                rule.says,
                ", ".join(filter(None, rule.source.split(";"))) or "–",
            )
            for rule in all_rules().values()
        ),
    )


def options() -> str:
    """Every option that a layout is written with."""
    return _table(
        ("option", "value", "what it is"),
        (
            (
                f"`{', '.join(option.names)}`",
                f"`{option.form}`".replace("|", "\\|"),
                option.help,
            )
            for option in OPTIONS
        ),
    )


def tables() -> str:
    """Every table of the catalog with its columns; those that tell rows apart are in bold."""
    return _table(
        ("table", "rows", "columns"),
        (
            (
                f"`{name}`",
                str(len(Catalog().table(name))),
                ", ".join(f"**{c}**" if c in table.key else c for c in table.kind._fields),
            )
            for name, table in TABLES.items()
        ),
    )


def sources() -> str:
    """Every source key with its document and date."""
    return _table(("key", "document", "date"), Catalog().sources.values())


def current_page() -> str:
    """The page with its tables as the code has them now."""
    text = PAGE.read_text(encoding="utf-8")
    for make in (rules, options, tables, sources):
        mark = make.__name__
        block = f"<!-- {mark} -->\n\n{make()}\n<!-- end of {mark} -->"
        pattern = rf"<!-- {mark} -->.*?<!-- end of {mark} -->"
        text, times = re.subn(pattern, lambda _, block=block: block, text, flags=re.DOTALL)
        if times != 1:
            raise ValueError(f"{PAGE.name} has {times} places for the table of {mark}")
    return text


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(current_page(), encoding="utf-8")
