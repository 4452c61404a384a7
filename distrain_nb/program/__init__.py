"""A cell, or a function, becomes a self-contained program."""

from distrain_nb.program.capture import capture
from distrain_nb.program.notebook.cells import Cell, Notebook, current_notebook, working_folder
from distrain_nb.program.notebook.function import of_function
from distrain_nb.program.program import NO_PROGRAM, CapturedSource, CapturedValue, Program
from distrain_nb.program.script import Script, capture_script, read_module, read_script
from distrain_nb.worker.rank.program import Segment

__all__ = [
    "NO_PROGRAM",
    "CapturedSource",
    "CapturedValue",
    "Cell",
    "Notebook",
    "Program",
    "Script",
    "Segment",
    "capture",
    "capture_script",
    "current_notebook",
    "of_function",
    "read_module",
    "read_script",
    "working_folder",
]
