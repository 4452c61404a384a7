"""Which machines a job gets: layouts, the facts about machines, and the rules between them.

Beside the values here: `rules.check` gives findings, `exchange` the clouds' own forms, `catalog`
the facts, `choices` and `totals` what a form shows, `sizing` and `traffic` the Reduction Server.
"""

from __future__ import annotations

from distrain_nb.layout.files import load, save, saved
from distrain_nb.layout.layout import LAUNCHERS, PLACES, Layout
from distrain_nb.layout.options import OPTIONS, Option
from distrain_nb.layout.pool import Pool, Role

__all__ = [
    "LAUNCHERS",
    "OPTIONS",
    "PLACES",
    "Layout",
    "Option",
    "Pool",
    "Role",
    "load",
    "save",
    "saved",
]
