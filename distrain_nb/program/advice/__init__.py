"""Looks at a training program for what its distributed framework asks of it.

Horovod's six changes, what goes with DDP and FSDP, and the scope of TensorFlow's strategies. It
reads the code and runs nothing; findings are warnings and infos, and an error only for processes
that are sure to fail.
"""

from __future__ import annotations

import ast
import re
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.advice import processes
from distrain_nb.program.advice.arms import taken
from distrain_nb.program.advice.horovod import horovod
from distrain_nb.program.advice.own_place import own_place
from distrain_nb.program.advice.parsed import defaults
from distrain_nb.program.advice.processes import without_nccl
from distrain_nb.program.advice.pytorch import pytorch
from distrain_nb.program.advice.reading import Code, used
from distrain_nb.program.advice.starters import starters
from distrain_nb.program.advice.storage import BUCKETS, RemoteFolder, storage, told_by
from distrain_nb.program.advice.tensorflow import tensorflow
from distrain_nb.program.python.ipython_syntax import plain
from distrain_nb.worker.rank.program import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from distrain_nb.program.advice.training import Note
    from distrain_nb.program.program import Program


__all__ = [
    "BUCKETS",
    "RemoteFolder",
    "about_storage",
    "avoids_nccl",
    "findings",
    "findings_in",
    "one_process",
    "own_processes",
    "texts_of_modules",
    "told_by",
    "unread_arguments",
]

# `sys.argv`, and what reads it: by the names of parsers, or of packages that have some.
_READS = re.compile(
    r"argv|argparse|arg_?parser|parse_args|parse_known|from_cli|(\b|_)CLI\b|\bcli\b"
    r"|\b(getopt|optparse|click|typer|fire|docopt|absl|hydra|tyro|draccus|pyrallis|simple_parsing"
    r"|tap|gin|plac|cyclopts|clize|sacred|ml_collections|flags|FLAGS|DISTRAIN_ARGUMENTS)\b",
    re.I,
)


def findings(source: str, label: str, first_line: int = 1) -> tuple[Finding, ...]:
    """Return what a cell lacks, from its line `first_line` (1-based) on; lines count from the
    first.

    The cell is looked at by itself. Code that can't be parsed gives nothing: capture says why.
    """
    lines = source.split("\n")
    text = "\n".join([*[""] * (first_line - 1), *lines[first_line - 1 :]])
    return findings_in(text, (Segment(1, len(lines), label, 1, is_cell=True),))


def findings_in(
    main: str,
    segments: Sequence[Segment],
    remote: Sequence[RemoteFolder] = (BUCKETS,),
) -> tuple[Finding, ...]:
    """Return what a program lacks, its definitions from other cells included.

    `main` is the text of main.py and `segments` say which cell's lines it has. `remote` are folders
    whose files are fetched one by one.
    """
    reading = partial(storage, remote=remote)
    checks = (horovod, pytorch, tensorflow, processes.one_process, reading)
    return _found(main, segments, checks)


def about_storage(
    main: str, segments: Sequence[Segment], remote: Sequence[RemoteFolder]
) -> tuple[Finding, ...]:
    """Return the part of it that is due to a single rank too: how files in `remote` folders are
    read."""
    return _found(main, segments, (partial(storage, remote=remote),))


def one_process(
    main: str, segments: Sequence[Segment], varied: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return why a program wants one process on a machine, however many GPUs that has; else empty.

    `varied` are names whose values are not those of the text.
    """
    return _found(main, segments, (processes.one_process,), varied)


def own_processes(
    main: str,
    segments: Sequence[Segment],
    ranks_per_replica: int,
    modules: Mapping[str, str] = MappingProxyType({}),
    arguments: Sequence[str] | None = None,
) -> tuple[Finding, ...]:
    """Return the calls that start processes themselves in a program of several ranks, or give all
    ranks the same address: an error where it is sure to fail, which repairs of the cell put right.
    `modules` are the texts of the program's own modules, by their files; `arguments` are all that
    the program gets, None where that isn't known."""
    first, trees, places = main.count("\n") + 2, [], [*segments]
    for file, text in modules.items():
        tree = plain(text).tree
        if tree is not None:
            trees.append(ast.increment_lineno(deepcopy(tree), first - 1))
            last = first + text.count("\n")
            places.append(Segment(first, last, file, 1))
            first = last + 1
    check = partial(starters, text=main, ranks_per_replica=ranks_per_replica)
    place = partial(own_place, text=main, ranks_per_replica=ranks_per_replica)
    return _found(main, places, (check, place), modules=trees, arguments=arguments)


def avoids_nccl(main: str) -> str:
    """Return what a program uses instead of NCCL, `gloo` or `RING`; empty for nothing."""
    tree = plain(main).tree
    return without_nccl(Code(taken(tree))) if tree is not None else ""


def _found(
    main: str,
    segments: Sequence[Segment],
    checks: Sequence[Callable[[Code], Iterator[Note]]],
    varied: Collection[str] = (),
    modules: Sequence[ast.Module] = (),
    arguments: Sequence[str] | None = None,
) -> tuple[Finding, ...]:
    tree = plain(main).tree
    if tree is None:
        return ()
    parsed = {} if arguments is None else defaults(tree, arguments)
    module = taken(tree, varied, parsed)
    if modules:  # first, so that names mean what the program itself has by them
        every = [statement for tree in modules for statement in tree.body]
        kinds = (ast.Import, ast.ImportFrom, ast.Assign)
        plain_ones = (statement for statement in every if isinstance(statement, kinds))
        module = ast.Module([*plain_ones, *used(every, [module])[0], *module.body], [])
    code = Code(module)
    notes = dict.fromkeys(note for check in checks for note in check(code))
    placed = []
    for note in sorted(notes, key=lambda note: (note.line, note.code)):
        segment = next((s for s in segments if s.first <= note.line <= s.last), None)
        line = segment.line + note.line - segment.first if segment else 0
        place = f"{segment.label}, line {line}" if segment else ""
        fixes = note.fixes if segment and segment.is_cell else ()  # which are of the cell alone
        placed.append(Finding(note.code, note.severity, place, note.message, fixes))
    return tuple(placed)


# -- arguments that nothing of a program reads ----------------------------------------------------


def unread_arguments(program: Program, arguments: Sequence[str]) -> Iterator[Finding]:
    """Yield an info where neither the program nor its own modules seem to read any argument."""
    texts = (program.main, *texts_of_modules(program).values()) if arguments else ()
    if texts and not any(map(_READS.search, texts)):
        # Values may be secrets.
        options = [word.partition("=")[0] for word in arguments if word.startswith("-")]
        words = f"`{' '.join(options)}`" if options else "its arguments"
        message = f"the program never reads {words}, which `sys.argv[1:]` contains"
        yield Finding("capture.unread-arguments", Severity.INFO, "arguments", message)


def texts_of_modules(program: Program) -> dict[str, str]:
    """Return the texts of the modules that travel with a program, by their files."""
    read = {
        name: file.read_bytes() if isinstance(file, Path) else file
        for name, file in program.files.items()
        if name.endswith(".py")
    }
    return {name: data.decode("utf-8", "replace") for name, data in read.items()}
