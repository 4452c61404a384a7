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


def duration(seconds: float) -> str:
    """In hours, or else in minutes."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h" if hours and not minutes else f"{round(seconds / 60)} min"
