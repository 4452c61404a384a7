"""Runs: the list of them, a handle on each, and the streams that they leave on disk."""

from __future__ import annotations

from distrain_nb.run.log.reader import Line, LogReader, final_lines
from distrain_nb.run.results import Results
from distrain_nb.run.run import Run
from distrain_nb.run.store import Record, Store

__all__ = ["Line", "LogReader", "Record", "Results", "Run", "Store", "final_lines"]
