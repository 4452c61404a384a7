"""A place where notebooks run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NotebookPlace:
    """`title` is what people call it, with what there is to say of its kind and version; `idle_s`
    is after how many seconds without activity its machine is shut down, None where it never is or
    nobody knows; `idle_source` is where that is set."""

    title: str
    idle_s: float | None = None
    idle_source: str = ""
