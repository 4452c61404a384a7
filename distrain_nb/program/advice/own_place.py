"""A program that gives its process a place in a world itself: the same one in every rank."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.findings import Fix, Severity
from distrain_nb.program.advice.reading import last
from distrain_nb.program.advice.starters import depends
from distrain_nb.program.advice.training import Note
from distrain_nb.program.advice.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
_PLACES = (
    *_RANKS,
    *("LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
)
_MEETS = ("init_process_group", "init_distributed", "Accelerator", "Fabric", "Trainer")


def own_place(code: Code, text: str, ranks_per_replica: int) -> Iterator[Note]:
    """Yield ranks that the program writes out: an error where the ranks of a machine are sure to
    listen at the same port. `text` is the program's."""
    if ranks_per_replica < 2:
        return
    sure = [v for v in _variables(code) if code.runs(v.by) and _is_sure(code, v.by)]
    places = (v.by for v in sure if v.name in _PLACES and isinstance(v.by, ast.Assign))
    lines = {ast.get_source_segment(text, by) for by in places if by.lineno <= text.count("\n") + 1}

    def without(cell: str) -> str:
        return "\n".join(line for line in cell.split("\n") if line.strip() not in lines)

    meets = any(code.runs(call) for call in code.called(*_MEETS))
    elsewhere = any(word.startswith("file:") for word in code.texts) or code.says("FileStore")
    severity = Severity.ERROR if meets and not elsewhere else Severity.WARNING
    for by, name, value in sure:
        if name in _RANKS and _is_written(code, value):
            message = (
                f"`{ast.unparse(by)}` gives every rank the same place, and each is a world of its"
                " own: remove it, as the launcher sets RANK, WORLD_SIZE and MASTER_PORT, or take"
                " `-n 1`"
            )
            fix = Fix("Remove what sets the launcher's variables", without)
            fixes = (fix,) if isinstance(by, ast.Assign) else ()
            yield Note("launcher.own-place", severity, by.lineno, message, fixes)


class _Variable(NamedTuple):
    """What sets a variable of the launcher's, to what."""

    by: ast.Assign | ast.Call
    name: object
    value: ast.expr


def _variables(code: Code) -> Iterator[_Variable]:
    """Yield what sets variables of the environment, or gives the rank itself."""
    for node in (n for n in code.nodes if isinstance(n, ast.Assign)):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and last(code.name(target.value)) == "environ":
                yield _Variable(node, getattr(target.slice, "value", None), node.value)
    for call in code.called("init_process_group"):
        yield from (_Variable(call, "RANK", k.value) for k in call.keywords if k.arg == "rank")
    for call in code.called("update"):
        if code.name(call.func).endswith("environ.update"):
            yield from (_Variable(call, k.arg, k.value) for k in call.keywords)
            for written in (item for item in call.args if isinstance(item, ast.Dict)):
                keys = (getattr(key, "value", None) for key in written.keys)
                pairs = zip(keys, written.values, strict=True)
                yield from (_Variable(call, key, value) for key, value in pairs)


def _is_sure(code: Code, node: ast.AST) -> bool:
    """Return whether no condition decides that a node runs, nor that a variable is missing."""
    handler = code.innermost(node, ast.ExceptHandler)
    return handler is None and not depends(code, node)


def _is_written(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and code.name(value.func) in ("str", "int"):
        return all(_is_written(code, argument) for argument in value.args)
    nodes = Values(code).nodes(value)
    return bool(nodes) and all(isinstance(node, ast.Constant) for node in nodes)
