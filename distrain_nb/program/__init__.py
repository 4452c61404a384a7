"""A cell, or a function, becomes a self-contained program."""

from distrain_nb.program.capture import capture
from distrain_nb.program.cells import Cell, Notebook, working_folder
from distrain_nb.program.function import of_function
from distrain_nb.program.program import CarriedSource, CarriedValue, Program
from distrain_nb.worker.program import Segment

__all__ = [
    "CarriedSource",
    "CarriedValue",
    "Cell",
    "Notebook",
    "Program",
    "Segment",
    "capture",
    "of_function",
    "working_folder",
]
