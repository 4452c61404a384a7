"""Sources of a run: source text, a function, a cell, a script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Generic, TypeAlias

from distrain_nb.program import (
    Cell,
    Notebook,
    Script,
    current_notebook,
    of_function,
    read_module,
    read_script,
    working_folder,
)
from distrain_nb.run.results import RETURNED
from distrain_nb.types import Function, P, R, Value

if TYPE_CHECKING:
    from distrain_nb.run.results import Results


@dataclass(frozen=True)
class Source(Generic[R]):
    """A cell to run, from `first_line` (1-based) on, the notebook that it stands in, and the names
    that come back without being asked for. A script has neither."""

    cell: Cell
    notebook: Notebook
    first_line: int = 1
    returns: tuple[str, ...] = ()
    script: Script | None = None


Code: TypeAlias = "str | Function | Source"


def call(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Source[R]:
    """Return the call of a function with arguments, which travel as the notebook's values do, as
    code for `submit`, `plan` and `check`. Raises OptionError for what has no name in a module."""
    return Source(*of_function(function, *args, **kwargs), returns=(RETURNED,))


def script(
    target: str | PathLike[str], *arguments: Value, is_module: bool = False
) -> Source[Results]:
    """Return a script with its arguments, or with `is_module` what `python -m` runs, as code for
    `submit`, `plan` and `check`. Paths are relative to the working folder. Raises OptionError for a
    file or module that is not there."""
    read = read_module if is_module else read_script
    program_script = read(str(target), [str(argument) for argument in arguments], working_folder())
    notebook = Notebook({}, (), program_script.folder)
    return Source(Cell(program_script.label, ""), notebook, script=program_script)


def source_of(code: Code) -> Source:
    """Return the source that code, a function or a script stands for."""
    if isinstance(code, Source):
        return code
    if callable(code):
        return call(code)
    notebook = current_notebook() or Notebook({}, (), working_folder())
    return Source(Cell("submit()", code), notebook)
