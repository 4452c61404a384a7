"""Runs a program folder: main.py, piece by piece, under the names of the notebook's cells.

Each piece is compiled with its cell's name and line numbers, and the cells' text is known to
`linecache`: tracebacks, warnings and `inspect.getsource` show the notebook's lines.
`python -m distrain_nb.worker.program FOLDER` runs a folder by hand.
"""

from __future__ import annotations
import __future__

import ast
import asyncio
import inspect
import json
import linecache
import os
import re
import sys
import traceback
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

MAIN, SOURCE_MAP, ARGUMENTS = "main.py", "main.json", "main.args"
FOLDER_VARIABLE = "DISTRAIN_PROGRAM"  # where processes that the program spawns find it
_SPAWNED = "distrain_nb.worker.spawned"
_OWN_FRAMES = os.path.dirname(os.path.abspath(__file__))
_labels: Set[str] = set()  # file names of the program's own code in tracebacks


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
    """Code that is compiled as one: its file's name, and its text moved to its line."""

    label: str
    text: str
    is_cell: bool


def source_map(segments: Iterable[Segment]) -> str:
    """Segments as JSON."""
    return json.dumps([segment._asdict() for segment in segments])


def read_source_map(folder: Path) -> List[Segment]:
    """The segments of a program folder."""
    text = (folder / SOURCE_MAP).read_text(encoding="utf-8")
    return [Segment(**fields) for fields in json.loads(text)]


def arguments(folder: Path) -> List[str]:
    """The program's own `sys.argv[1:]`; a folder without the file has none."""
    try:
        return [str(word) for word in json.loads((folder / ARGUMENTS).read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []


def run(folder: Path) -> Dict[str, Any]:
    """Run a program folder as `__main__` and give its names. Raises whatever it raises."""
    folder = folder.absolute()
    main = _fresh_main(folder)
    pieces, flags = read_pieces(folder)
    for piece in pieces:
        execute(compile(piece.text, piece.label, "exec", flags, dont_inherit=True), vars(main))
    return vars(main)


def format_exception(error: BaseException) -> str:
    """The traceback without our own frames, with places such as "Cell In[7], line 12, in f"."""
    report = traceback.TracebackException.from_exception(error)
    _drop_own_frames(report, set())
    return "".join(_place(chunk) for chunk in report.format())


# -- reading and compiling ------------------------------------------------------------------------


def read_pieces(folder: Path) -> Tuple[List[Piece], int]:
    """The program's code in its order, and the compiler's flags for its `__future__` imports."""
    main = folder / MAIN
    lines = main.read_text(encoding="utf-8").split("\n")
    pieces = _pieces(str(main), lines, read_source_map(folder))
    _tell_linecache(pieces)
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
    """Run code in a namespace; code that awaits at its top level, in a loop of its own."""
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, namespace))
    else:
        exec(code, namespace)


def _tell_linecache(pieces: Iterable[Piece]) -> None:
    """Make a text for each cell from the pieces that are there, each on its own lines."""
    texts: Dict[str, List[str]] = {}
    for piece in pieces:
        known = texts.setdefault(piece.label, [])
        for number, line in enumerate(piece.text.split("\n")):
            if number >= len(known):
                known.append(line)
            elif line:
                known[number] = line
    for label, lines in texts.items():
        text = [line + "\n" for line in lines]
        _labels.add(label)
        linecache.cache[label] = (sum(map(len, text)), None, text, label)


def _fresh_main(folder: Path) -> ModuleType:
    main = ModuleType("__main__")
    main.__file__ = str(folder / MAIN)
    main.__spec__ = ModuleSpec(_SPAWNED, None)  # what processes import that the program spawns
    os.environ[FOLDER_VARIABLE] = str(folder)
    sys.modules["__main__"] = main
    sys.argv = [main.__file__, *arguments(folder)]
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    return main


# -- tracebacks -----------------------------------------------------------------------------------


def _drop_own_frames(report: Any, seen: "set[int]") -> None:
    if report is None or id(report) in seen:
        return
    seen.add(id(report))
    cells = [n for n, frame in enumerate(report.stack) if frame.filename in _labels]
    theirs = [f for f in report.stack[min(cells, default=0) :] if not _is_own(f.filename)]
    report.stack = traceback.StackSummary.from_list(theirs)
    for inner in (report.__cause__, report.__context__, *(getattr(report, "exceptions", ()) or ())):
        _drop_own_frames(inner, seen)


def _is_own(filename: str) -> bool:
    return os.path.dirname(os.path.abspath(filename)) == _OWN_FRAMES


_FRAME = re.compile(r'^(?P<margin>[ |+-]*)File "(?P<cell>Cell [^"]*)"', re.M)


def _place(chunk: str) -> str:
    """A line of a traceback, with a cell's name as it is."""
    found = _FRAME.match(chunk)
    return found["margin"] + found["cell"] + chunk[found.end() :] if found else chunk


if __name__ == "__main__":
    run(Path(sys.argv[1]))
