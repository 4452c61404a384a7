"""Pages of a list, as a service gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row")


def page_at(rows: Sequence[Row], token: str, size: int) -> tuple[Sequence[Row], str]:
    """Return the page that a token stands for, and the next page's token; empty for first and
    last."""
    end = int(token or 0) + size
    return rows[end - size : end], str(end) if end < len(rows) else ""
