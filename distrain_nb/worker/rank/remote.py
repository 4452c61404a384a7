"""`@distrain_nb.remote` where ranks run: the function is what it is."""

from __future__ import annotations

from typing import Any


def remote(function: Any = None, **options: Any) -> Any:  # noqa: ARG001
    """The decorator, with or without options: gives the function itself."""
    return (lambda each: each) if function is None else function
