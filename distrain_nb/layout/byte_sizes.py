"""Sizes in bytes, as a user writes them."""

from __future__ import annotations

import re

from distrain_nb.errors import OptionError

_UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def size_in_bytes(text: str, option: str = "--model-size") -> float:
    """Return bytes of `100MB`, `1.3 GiB` or a bare number. Raises OptionError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _UNITS:
        raise OptionError(
            f"invalid {option} {text!r}: expected a size such as 100MB, 1.3GB or 512MiB"
        )
    return float(match[1]) * _UNITS[match[2].upper()]
