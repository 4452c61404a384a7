"""The verbs for people who write Python; the magics are thin over them."""

from __future__ import annotations

from distrain_nb.api.listing import attach, compare, runs
from distrain_nb.api.packing import packing
from distrain_nb.api.preparation import Prepared, check, plan, prepare, program
from distrain_nb.api.source import Code, Source, call, script, source_of
from distrain_nb.api.submission import start, submit
from distrain_nb.run.run import delete

__all__ = [
    "Code",
    "Prepared",
    "Source",
    "attach",
    "call",
    "check",
    "compare",
    "delete",
    "packing",
    "plan",
    "prepare",
    "program",
    "runs",
    "script",
    "source_of",
    "start",
    "submit",
]
