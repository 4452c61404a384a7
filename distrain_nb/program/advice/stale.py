"""Optimizers of the parameters that a model had before FSDP, which puts others in their place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.program.advice.reading import given, is_constant, keyword
from distrain_nb.program.advice.sharded import WRAPS
from distrain_nb.program.advice.training import optimizers, warning
from distrain_nb.program.advice.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_PARAMETERS = ("parameters", "named_parameters")


class _Use(NamedTuple):
    """A call that is given a model: the wrap or the optimizer, or a function that makes it."""

    call: ast.Call
    model: ast.expr


def stale(code: Code) -> Iterator[Note]:
    """The optimizers that are made before a wrap of the model whose parameters they have."""
    values = Values(code)
    made = optimizers(code)
    takes = {use for call in made for use in _takes(values, call)}
    makes = {*made, *(use.call for use in takes)}
    for wrap in code.called(*WRAPS):
        for use in _wraps(values, wrap):
            inside = code.function_of(use.call)
            here = [call for call in makes if code.function_of(call) is inside]
            again = {_target(code, call) for call in here if call.lineno > use.call.lineno} - {""}
            for call, model in takes:
                before = call in here and call.lineno < use.call.lineno
                before = before and not code.apart(call, use.call)
                same = ast.unparse(model) == ast.unparse(use.model)
                name = _target(code, call)
                if before and same and name not in again:
                    handed_on = name in map(ast.unparse, given(use.call))
                    yield _note(call, wrap if handed_on else use.call)


def _note(optimizer: ast.Call, wrap: ast.Call) -> Note:
    return warning(
        "fsdp.optimizer",
        optimizer.lineno,
        "this optimizer has the parameters from before FSDP, so that its steps change nothing: "
        f"make it after {ast.unparse(wrap)}",
    )


def _wraps(values: Values, wrap: ast.Call) -> Iterator[_Use]:
    model = wrap.args[0] if wrap.args else keyword(wrap, "module")
    if model is not None and not is_constant(keyword(wrap, "use_orig_params"), True):
        yield from _lifted(values, wrap, model, set())


def _takes(values: Values, optimizer: ast.Call) -> Iterator[_Use]:
    """The models whose parameters an optimizer gets, directly or by names for them."""
    seen: set[ast.AST] = set()
    open_ends = [(optimizer, argument) for argument in given(optimizer)]
    while open_ends:
        call, node = open_ends.pop()
        for each in ast.walk(node):
            if each in seen:
                continue
            seen.add(each)
            if isinstance(each, ast.Attribute) and each.attr in _PARAMETERS:
                seen.update(ast.walk(each.value))
                yield from _lifted(values, call, each.value, set())
            elif isinstance(each, (ast.Name, ast.Attribute)):
                arguments = values.arguments(each)
                here = [(call, v) for v in values.reaching(each)]
                passed = [value for _, value in arguments]
                open_ends += [*((c, v) for c, v in here if v not in passed), *arguments]


def _lifted(values: Values, call: ast.Call, model: ast.expr, seen: set[ast.Call]) -> Iterator[_Use]:
    """A call with the model that it is given, and where that is a parameter, who gives it."""
    if call in seen:
        return
    seen.add(call)
    yield _Use(call, model)
    for outer, argument in values.arguments(model):
        yield from _lifted(values, outer, argument, seen)


def _target(code: Code, call: ast.Call) -> str:
    """The name that what a call makes is given; empty if it has none."""
    outer = code.parents.get(call)
    if isinstance(outer, ast.AnnAssign):
        return ast.unparse(outer.target)
    return ast.unparse(outer.targets[0]) if isinstance(outer, ast.Assign) else ""
