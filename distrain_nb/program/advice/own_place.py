"""A program that gives its process a place in a world itself: the same one in every rank."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.findings import Fix, Severity
from distrain_nb.program.advice.reading import keyword, last
from distrain_nb.program.advice.starters import conditions
from distrain_nb.program.advice.training import Note
from distrain_nb.program.advice.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
_MEETS = ("init_process_group", "init_distributed", "Accelerator", "Fabric", "Trainer")


def own_place(code: Code, text: str, ranks_per_replica: int) -> Iterator[Note]:
    """A rank that the program writes out: an error where the ranks of a machine are sure to listen
    at the same port. `text` is the program's."""
    if ranks_per_replica < 2:
        return
    places = [
        (node, written)
        for node, written in _written_ranks(code)
        if code.runs(node) and _is_sure(code, node)
    ]
    meets = any(code.runs(call) for call in code.called(*_MEETS))
    elsewhere = any(word.startswith("file:") for word in code.texts) or code.says("FileStore")
    severity = Severity.ERROR if meets and not elsewhere else Severity.WARNING
    for node, written in places:
        message = (
            f"`{written}` gives every rank the same place, and each is a world of its own: remove"
            " it, as the launcher sets RANK, WORLD_SIZE and MASTER_PORT, or take `-n 1`"
        )
        line = getattr(node, "lineno", 0)
        fixes = tuple(_removal(code, text)) if isinstance(node, ast.Assign) else ()
        yield Note("launcher.own-place", severity, line, message, fixes)


def _is_sure(code: Code, node: ast.AST) -> bool:
    """Return whether no condition decides that a node runs, nor that a variable is missing."""
    handler = code.innermost(node, ast.ExceptHandler)
    return handler is None and not any(conditions(code, node, frozenset()))


def _written_ranks(code: Code) -> Iterator[tuple[ast.AST, str]]:
    """Yield what gives the process a rank that is the same in all, as it is written."""
    for node in code.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if _variable(code, target) in _RANKS and _is_written(code, node.value):
                    yield node, ast.unparse(node)
    for call in code.called("update"):
        if last(code.name(call.func).rpartition(".")[0]) == "environ":
            arguments = {k.arg: k.value for k in call.keywords}
            for argument in call.args:
                if isinstance(argument, ast.Dict):
                    keys = [getattr(key, "value", None) for key in argument.keys]
                    arguments |= dict(zip(keys, argument.values, strict=True))
            ranks = [value for key, value in arguments.items() if key in _RANKS]
            if any(_is_written(code, value) for value in ranks):
                yield call, ast.unparse(call)
    for call in code.called("init_process_group"):
        rank = keyword(call, "rank")
        if rank is not None and _is_written(code, rank):
            yield call, f"rank={ast.unparse(rank)}"


def _variable(code: Code, target: ast.expr) -> object:
    """Return the variable of the environment that a target stands for."""
    if not isinstance(target, ast.Subscript) or last(code.name(target.value)) != "environ":
        return None
    return getattr(target.slice, "value", None)


def _is_written(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and code.name(value.func) in ("str", "int"):
        return all(_is_written(code, argument) for argument in value.args)
    nodes = Values(code).nodes(value)
    return bool(nodes) and all(isinstance(node, ast.Constant) for node in nodes)


def _removal(code: Code, text: str) -> Iterator[Fix[str]]:
    """Yield the repair that removes the lines which set the launcher's variables."""
    last_line = text.count("\n") + 1
    lines = {
        ast.get_source_segment(text, other)
        for other in code.nodes
        if isinstance(other, ast.Assign)
        and other.lineno <= last_line
        and _variable(code, other.targets[0]) in (*_RANKS, *_OTHERS)
        and _is_sure(code, other)
    }

    def apply(cell: str) -> str:
        rest = [line for line in cell.split("\n") if line.strip() not in lines]
        return "\n".join(rest)

    yield Fix("Remove what sets the launcher's variables", apply)


_OTHERS = ("LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
