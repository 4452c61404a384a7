"""Layouts: the machines of a job, the facts about machines, and the rules between them.

Beside the values here: `rules.check` gives findings, `formats` the clouds' own forms, `catalog`
the facts, `choices` and `totals` what a form shows, `sizing` and `traffic` the Reduction Server.
"""

from __future__ import annotations

from distrain_nb.layout.files import saved
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.option import Option
from distrain_nb.layout.options import LAUNCHERS, OPTIONS
from distrain_nb.layout.place import PLACES
from distrain_nb.layout.pool import Pool, Role

load, save = Layout.load, Layout.save

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
