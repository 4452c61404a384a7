"""Versions as numbers that compare."""

from __future__ import annotations

import re


def version(text: str | None) -> tuple[int, ...]:
    """`(2, 10, 1)` of `2.10.1`; what is no number ends it."""
    found = re.match(r"\d+(\.\d+)*", text or "")
    return tuple(map(int, found[0].split("."))) if found else ()


def split_framework(text: str) -> tuple[str, str]:
    """`("pytorch", "2.4")` of `pytorch-2.4`."""
    name, _, number = text.rpartition("-")
    return name, number
