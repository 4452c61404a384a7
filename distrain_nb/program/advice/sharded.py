"""What FSDP asks of a program: its state is in parts, which all ranks gather, and the parameters
that its models had before are no longer theirs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import Flow, Origin
from distrain_nb.program.advice.reading import given, is_constant, keyword, last
from distrain_nb.program.advice.training import is_guarded, optimizers, saves, warning
from distrain_nb.program.advice.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

WRAPS = ("FullyShardedDataParallel", "fully_shard")

_RANK_0 = "if torch.distributed.get_rank() == 0: torch.save(state, …)"
_FULL = (
    "torch.distributed.checkpoint.state_dict.get_model_state_dict({}, "
    "options=StateDictOptions(full_state_dict=True, cpu_offload=True))"
)
_ALL_SAVE = (
    "every rank saves here, one over the other: put it under if torch.distributed.get_rank() == 0:"
)
_STALE = (
    "this optimizer has the parameters from before FSDP, so that its steps change nothing: make it"
    " after"
)
# What gives the model that it is called on, or is given.
_SAME = frozenset(
    ("to", "cuda", "cpu", "train", "eval", "compile", "bfloat16", "half", "float", "requires_grad_")
)
_Use = tuple[ast.Call, ast.expr]  # what is given a model: a wrap, an optimizer, who calls them
_PARAMETERS = ("parameters", "named_parameters")
# Each of these needs all ranks, whatever the model's state is.
_TOGETHER = ("optim_state_dict", "full_optim_state_dict", "summon_full_params", "full_tensor")


def sharded(code: Code) -> Iterator[Note]:
    """Yield mistakes with the state of models under FSDP and `fully_shard` on one rank."""
    values, written = Values(code, _SAME), set[ast.AST]()
    if not code.says("full_tensor"):
        written.update(n for save in saves(code, guarded=True) for n in _saved(code, save))
    for call in code.called("state_dict", *_TOGETHER) if code.called(*WRAPS) else ():
        name, guarded = last(code.name(call.func)), is_guarded(code, call)
        ways = _ways(values, call) if name == "state_dict" else {*WRAPS[:1]}
        if "fully_shard" in ways and (guarded or (call in written and len(ways) == 1)):
            waits = ", or waits for the others' for ever" if len(ways) > 1 else ""
            why = f"this has one rank's parts of the weights only{waits}"
            write = f"{why}: on every rank write state = {_full(call)}, then {_RANK_0}"
            yield warning("fsdp.state-dict", call.lineno, write)
        elif ways and guarded:
            yield warning(
                "fsdp.state-dict",
                call.lineno,
                f"rank 0 waits here for the others' parts for ever: call {name}() on every rank, "
                "and save on rank 0 only",
            )


def saved(code: Code) -> Iterator[Note]:
    """Yield the places where every rank saves to one file."""
    values, shards = Values(code, _SAME), bool(code.called(*WRAPS))
    for call in saves(code, guarded=False):
        states = [n for n in _saved(code, call) if isinstance(n, ast.Call)] if shards else []
        states = [n for n in states if last(code.name(n.func)) == "state_dict"]
        inside = {*ast.walk(call)}
        states = [
            n
            for n in states
            if (ways := _ways(values, n)) == {"fully_shard"}
            or (n in inside and (ways or not _is_made(values, n)))
        ]
        if not states:
            yield warning("ddp.checkpoint", call.lineno, _ALL_SAVE)
            continue
        whole = _full(states[0]) if code.called("fully_shard") else ast.unparse(states[0])
        yield warning(
            "fsdp.state-dict",
            call.lineno,
            "every rank saves here, one over the other. The state is gathered from all ranks, "
            f"so first, on every rank, state = {whole}, then {_RANK_0}",
        )


def _saved(code: Code, save: ast.Call) -> Iterator[ast.AST]:
    """Yield all that comes into what a save writes."""
    flow = Flow(code, Origin(), through=True)
    return (node for written in given(save) for node in flow.reached(written))


def _ways(values: Values, call: ast.Call) -> set[str]:
    """Return how the model that a call belongs to is sharded: the wraps that it may have got."""
    code, made = values.code, _made(values, getattr(call.func, "value", None))
    ways = set()
    for wrap in code.called(*WRAPS):
        name = last(code.name(wrap.func))
        its = {wrap} if name != "fully_shard" else _made(values, _model_of(wrap))
        same = code.function_of(wrap) is code.function_of(call)
        again = not code.loops(wrap).isdisjoint(code.loops(call))
        later = same and not again and wrap.lineno > call.lineno
        if not (made.isdisjoint(its) or later or code.apart(wrap, call)):
            ways.add(name)
    return ways


def _made(values: Values, model: ast.expr | None) -> set[object]:
    """Return what a model may be: calls, and the texts of names that nothing sets."""
    names = (ast.Name, ast.Attribute)
    return {ast.unparse(n) if isinstance(n, names) else n for n in values.nodes(model)}


def _is_made(values: Values, state: ast.Call) -> bool:
    """Return whether the code makes what a state is of."""
    made = _made(values, getattr(state.func, "value", None))
    return any(isinstance(node, ast.Call) for node in made)


def _model_of(wrap: ast.Call) -> ast.expr | None:
    return wrap.args[0] if wrap.args else keyword(wrap, "module")


def _full(call: ast.Call) -> str:
    model = call.func.value if isinstance(call.func, ast.Attribute) else call
    return _FULL.format(ast.unparse(model))


# -- optimizers of the parameters that a model had before --------------------------------------


def stale(code: Code) -> Iterator[Note]:
    """Yield the optimizers that are made before a wrap of the model whose parameters they have.

    Both are looked at where they are called, and where the functions are that they stand in.
    """
    values, made = Values(code), optimizers(code)
    takes = {use for o in made for node in given(o) for use in _takes(values, o, node, set())}
    makes = {*made, *(call for call, _ in takes)}
    for wrap in code.called(*WRAPS):
        model = _model_of(wrap)
        if model is None or is_constant(keyword(wrap, "use_orig_params"), True):
            continue
        for wraps, wrapped in _lifted(values, wrap, model, set()):
            here = [c for c in makes if code.function_of(c) is code.function_of(wraps)]
            again = {code.target(call) for call in here if call.lineno > wraps.lineno} - {""}
            for call, own in takes:
                name, same = code.target(call), ast.unparse(own) == ast.unparse(wrapped)
                before = call in here and call.lineno < wraps.lineno and not code.apart(call, wraps)
                if before and same and name not in again:
                    after = wrap if name in map(ast.unparse, given(wraps)) else wraps
                    yield warning("fsdp.optimizer", call.lineno, f"{_STALE} {ast.unparse(after)}")


def _takes(values: Values, call: ast.Call, node: ast.AST, seen: set[ast.AST]) -> Iterator[_Use]:
    """Yield the models whose parameters an optimizer gets, directly or by names for them."""
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.Attribute) and node.attr in _PARAMETERS:
        yield from _lifted(values, call, node.value, set())
        return
    for bound in values.bound_to(node) if isinstance(node, (ast.Name, ast.Attribute)) else ():
        yield from _takes(values, bound.call or call, bound.value, seen)
    for child in ast.iter_child_nodes(node):
        yield from _takes(values, call, child, seen)


def _lifted(values: Values, call: ast.Call, model: ast.expr, seen: set[ast.Call]) -> Iterator[_Use]:
    """Yield a call with the model that it is given, and where that is a parameter, who gives it."""
    if call in seen:
        return
    seen.add(call)
    yield call, model
    own = values.code.function_of(model)
    for bound in values.bound_to(model) if own else ():
        if bound.call and values.code.function_of(bound.by) is own:
            yield from _lifted(values, bound.call, bound.value, seen)
