"""Runs a program folder: main.py or a script, piece by piece, under the names of the notebook's
cells.

Each piece is compiled with its cell's name and line numbers, and `linecache` knows the text of the
cells. So tracebacks, warnings and `inspect.getsource` show the notebook's lines. `python -m
distrain_nb.worker.rank.program FOLDER` runs a folder by hand.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import json
import os
import site
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.functions import FOLDER_VARIABLE, labels, tell_linecache
from distrain_nb.worker.rank import (
    expected,
    interactive,
    jax_cluster,
    last_expression,
    torch_groups,
    torch_store,
)
from distrain_nb.worker.rank.arguments import added_arguments
from distrain_nb.worker.rank.later import LATER, make_on_demand
from distrain_nb.worker.rank.reloading import reload_edited
from distrain_nb.worker.rank.since_import import keep

MAIN, SOURCE_MAP, ARGUMENTS, ENTRY = "main.py", "main.json", "main.args", "main.entry"
ENVIRONMENT = "main.environ"  # variables that the program finds, as a JSON object
TUNED = "main.tuned"  # names that a study's trials give values, with the type of these
OF_PROGRAM = (
    SOURCE_MAP,
    ARGUMENTS,
    ENTRY,
    ENVIRONMENT,
    TUNED,
    expected.EXPECTED,
    LATER,
)  # what stands beside its code
RECEIVER = "KUBEFLOW_TRAINER_SERVER_URL"  # where transformers and Kubeflow's programs report to
_SPAWNED = "distrain_nb.worker.rank.spawned"


class EntryPoint(NamedTuple):
    """The file that runs as `__main__`, by its path in the program's folder.

    For a module that `-m` names, `package` is the package at which its relative imports begin, ""
    for none. For a file it is None, and imports come from the file's folder.
    """

    file: str = MAIN
    package: Optional[str] = None
    is_script: bool = False  # which shows no value of its last line

    def imports_from(self, folder: Path) -> Path:
        return folder if self.package is not None else (folder / self.file).parent


RUNS_MAIN = EntryPoint()


class Spawner(ModuleSpec):
    """The spec of a program's `__main__`: spawned processes import it."""

    def __init__(self, package: Optional[str] = None) -> None:
        super().__init__(_SPAWNED, None)
        self.package = package

    @property
    def parent(self) -> Optional[str]:
        return super().parent if self.package is None else self.package


class Segment(NamedTuple):
    """Lines `first` to `last` of main.py (1-based) are lines of a cell, from `line` on.

    `is_cell` marks the cell that runs; the others are definitions of the notebook.
    """

    first: int
    last: int
    label: str
    line: int
    is_cell: bool = False


class Piece(NamedTuple):
    """Code that is compiled as one: the name of its file, and its text, moved to its line."""

    label: str
    text: str
    is_cell: bool

    @property
    def where(self) -> str:
        return f"{self.label}, line {len(self.text) - len(self.text.lstrip(chr(10))) + 1}"


def source_map(segments: Iterable[Segment]) -> str:
    """Write segments as JSON."""
    return json.dumps([segment._asdict() for segment in segments])


def read_source_map(folder: Path) -> List[Segment]:
    """Return the segments of a program folder."""
    text = (folder / SOURCE_MAP).read_text(encoding="utf-8")
    return [Segment(**fields) for fields in json.loads(text)]


def arguments(folder: Path) -> List[str]:
    """Return `sys.argv[1:]`: the arguments of the program's folder, then those of this job."""
    try:
        words = [str(word) for word in json.loads((folder / ARGUMENTS).read_text(encoding="utf-8"))]
    except FileNotFoundError:
        words = []
    return words + added_arguments()


def variables(folder: Path) -> Dict[str, str]:
    """Return the variables of the environment that the program itself sets."""
    try:
        environment: Dict[str, str] = json.loads((folder / ENVIRONMENT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return environment


def parameters(folder: Path) -> Dict[str, str]:
    """Return the values of this trial in Python's notation, by the names that the program reads.

    Raises ValueError for a text instead of a number.
    """
    try:
        kinds = json.loads((folder / TUNED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    pairs = [word[2:].split("=", 1) for word in added_arguments() if word.startswith("--")]
    texts = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    return {name: _value(name, texts[name], kinds[name]) for name in kinds if name in texts}


def _value(name: str, text: str, kind: str) -> str:
    if kind == "str":
        return repr(text)
    try:
        return repr(float(text) if kind == "float" else round(float(text)))
    except ValueError:
        raise ValueError(f"--{name}={text}: expected a number") from None


def read_entry_point(folder: Path) -> EntryPoint:
    """Read the entry point of a program folder; main.py where the folder names none."""
    try:
        return EntryPoint(**json.loads((folder / ENTRY).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return RUNS_MAIN


def main_file(folder: Path) -> Path:
    """Return the file that runs."""
    return folder / read_entry_point(folder).file


def add_packages() -> None:
    """Make packages importable that an image brings. The image's own packages come first."""
    packages = os.environ.get("DISTRAIN_PACKAGES", "")
    if os.path.isdir(packages):
        site.addsitedir(packages)


def prepare() -> None:
    """Change what programs see in their process, once, before the first one runs."""
    interactive.begin()
    torch_groups.change_process_groups()
    torch_store.serve_store()
    torch_groups.reduce()
    jax_cluster.change_jax()


def run(folder: Path) -> Dict[str, Any]:
    """Run a program folder as a new `__main__` and return its names. Raises what the program
    raises."""
    prepare()
    return run_in(ModuleType("__main__"), folder)


def run_in(
    main: ModuleType,
    folder: Path,
    before_cell: Callable[[], None] = lambda: None,
    is_trial: bool = False,
) -> Dict[str, Any]:
    """Run a program folder in a module, as `__main__`, and return its names.

    `before_cell` is called once everything is there that the cell needs. In a trial, our variables
    are removed from the environment. Raises what the program raises.
    """
    folder = folder.absolute()
    entry = read_entry_point(folder)
    called = sys.argv[:1]
    stays = _become_main(main, folder, entry)
    if is_trial:
        del os.environ[FOLDER_VARIABLE]
        sys.argv[:1] = called  # the name that a parser of arguments shows
    if stays and _brings_modules(folder):
        reload_edited(folder)
    pieces, flags = read_pieces(folder)
    make_on_demand(folder, vars(main), flags)
    expectations = expected.read(folder)
    keep(expectations.get("since_import", {}))
    reporting = _take_reporting() if any(piece.is_cell for piece in pieces) else {}
    for piece in pieces:
        expected.check(expectations, vars(main), before="" if piece.is_cell else piece.where)
        if piece.is_cell:
            os.environ.update(reporting)
            before_cell()
        shows = piece.is_cell and not entry.is_script
        for code in last_expression.codes(piece.text, piece.label, flags, shows=shows):
            execute(code, vars(main))
    if not entry.is_script:
        interactive.show_open_figures()
    return vars(main)


def _take_reporting() -> Dict[str, str]:
    """Remove the address of our receiver while objects are made again before the cell.

    With the address, transformers' `TrainingArguments` would differ from the notebook's.
    """
    if not os.environ.get(RECEIVER, "").startswith("http://127.0.0.1"):
        return {}
    return {RECEIVER: os.environ.pop(RECEIVER)}


# -- reading and compiling ------------------------------------------------------------------------


def read_pieces(folder: Path) -> Tuple[List[Piece], int]:
    """Return the program's code in order, and the compiler's flags for its `__future__` imports."""
    main = main_file(folder)
    segments = read_source_map(folder)
    text = main.read_text(encoding="utf-8")
    lines = _with_parameters(text.split("\n"), segments, parameters(folder))
    pieces = _pieces(str(main), lines, segments)
    _tell_linecache(str(main), pieces)
    tops = [s for piece in pieces for s in ast.parse(piece.text, piece.label).body]
    return pieces, _flags(tops)


def _pieces(main: str, lines: Sequence[str], segments: Sequence[Segment]) -> List[Piece]:
    pieces, upcoming = [], 1
    for segment in segments:
        between = lines[upcoming - 1 : segment.first - 1]
        pieces.append(_piece(main, between, upcoming))
        text = lines[segment.first - 1 : segment.last]
        pieces.append(_piece(segment.label, text, segment.line, segment.is_cell))
        upcoming = segment.last + 1
    pieces.append(_piece(main, lines[upcoming - 1 :], upcoming))
    return [piece for piece in pieces if piece.text.strip()]


def _with_parameters(
    lines: Sequence[str], segments: Sequence[Segment], texts: Dict[str, str]
) -> List[str]:
    """Return the lines of main.py with the values of this trial.

    They replace the lines that give the notebook's names their values.
    """
    quoted = {number for s in segments for number in range(s.first, s.last + 1)}
    changed = list(lines)
    for number, line in enumerate(lines, 1):
        name, equals, _ = line.partition(" = ")
        if equals and number not in quoted and name in texts:
            changed[number - 1] = name + equals + texts[name]
    return changed


def _piece(label: str, lines: Sequence[str], first: int, is_cell: bool = False) -> Piece:
    return Piece(label, "\n" * (first - 1) + "\n".join(lines), is_cell)


def _flags(statements: Iterable[ast.stmt]) -> int:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for node in statements:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= getattr(__future__, alias.name).compiler_flag
    return flags


def execute(code: CodeType, namespace: Dict[str, Any]) -> None:
    """Run code in a namespace. Code that awaits at its top level runs in an event loop of its
    own."""
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio  # for seconds on a busy machine, and few programs need it

        asyncio.run(eval(code, namespace))
    else:
        exec(code, namespace)


def _tell_linecache(main: str, pieces: Iterable[Piece]) -> None:
    """Add the pieces of each cell to `linecache`, on their own lines. main.py is a file."""
    labels.add(main)
    for piece in pieces:
        if piece.label != main:
            tell_linecache(piece.label, 1, piece.text.split("\n"))


def _become_main(main: ModuleType, folder: Path, entry: EntryPoint) -> bool:
    """Return whether it was that before, for an earlier cell."""
    main.__file__ = str(folder / entry.file)
    main.__spec__ = Spawner(entry.package)
    main.__package__ = entry.package
    os.environ.update({FOLDER_VARIABLE: str(folder), **variables(folder)})
    stays = sys.modules.get("__main__") is main
    sys.modules["__main__"] = main
    sys.argv = [main.__file__, *arguments(folder)]
    for place in (folder, entry.imports_from(folder)):
        # Of all cells that a rank has run, only those stay on the path that brought modules.
        if sys.path[:1] != [str(place)] and not (stays and not _brings_modules(place)):
            sys.path.insert(0, str(place))
    return stays


def _brings_modules(folder: Path) -> bool:
    with os.scandir(str(folder)) as entries:
        return any(not entry.name.startswith("main.") for entry in entries)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
