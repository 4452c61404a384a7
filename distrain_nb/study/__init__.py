"""Studies: many runs of one cell, of which each has other values of its parameters.

A name's module is imported when the name is first used: the process that owns the trials needs
little of what starts a study.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distrain_nb.study.attaching import attach
    from distrain_nb.study.listing import find_study, studies
    from distrain_nb.study.starting import prepare, tune
    from distrain_nb.study.study import Study

__all__ = ["Study", "attach", "find_study", "prepare", "studies", "tune"]

_HOMES = {
    "Study": "distrain_nb.study.study",
    "attach": "distrain_nb.study.attaching",
    "find_study": "distrain_nb.study.listing",
    "prepare": "distrain_nb.study.starting",
    "studies": "distrain_nb.study.listing",
    "tune": "distrain_nb.study.starting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
