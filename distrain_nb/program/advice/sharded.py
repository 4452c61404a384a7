"""What FSDP asks of a program: its state is in parts, which all ranks gather, and the parameters
that its models had before are no longer theirs."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    states = _States(code, Values(code, _SAME))
    written = {state for save in saves(code, guarded=True) for state in states.saved(save)}
    for call in code.called("state_dict", *_TOGETHER) if code.called(*WRAPS) else ():
        name, guarded = last(code.name(call.func)), is_guarded(code, call)
        ways = states.ways(call) if name == "state_dict" else {*WRAPS[:1]}
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
    states = _States(code, Values(code, _SAME))
    for call in saves(code, guarded=False):
        parts = states.parts(call) if code.called(*WRAPS) else []
        if not parts:
            yield warning("ddp.checkpoint", call.lineno, _ALL_SAVE)
            continue
        whole = _full(parts[0]) if code.called("fully_shard") else ast.unparse(parts[0])
        yield warning(
            "fsdp.state-dict",
            call.lineno,
            "every rank saves here, one over the other. The state is gathered from all ranks, "
            f"so first, on every rank, state = {whole}, then {_RANK_0}",
        )


@dataclass(frozen=True, eq=False)
class _States:
    """Tells of calls of `state_dict` what they give."""

    code: Code
    values: Values

    def ways(self, call: ast.Call) -> set[str]:
        """Return how the model that a call belongs to is sharded: the wraps that it may have
        got."""
        if not isinstance(call.func, ast.Attribute):
            return set()
        made = self.values.of(call.func.value)
        keys = {item.key for item in made}
        calls = [item.node.func for item in made if isinstance(item.node, ast.Call)]
        ways = {last(self.code.name(function)) for function in calls} & set(WRAPS)
        for wrap in self.code.called("fully_shard"):
            model = _model_of(wrap)
            same = self.code.function_of(wrap) is self.code.function_of(call)
            again = not self.code.loops(wrap).isdisjoint(self.code.loops(call))
            comes_later = same and not again and wrap.lineno > call.lineno
            if model is None or comes_later or self.code.apart(wrap, call):
                continue
            if any(item.key in keys for item in self.values.of(model)):
                ways.add("fully_shard")
        return ways

    def saved(self, save: ast.Call) -> list[ast.Call]:
        """Return the states that a save writes as they are, by names and in dictionaries too."""
        if not save.args or self.code.says("full_tensor"):
            return []
        return list(self._within(save.args[0], set()))

    def parts(self, save: ast.Call) -> list[ast.Call]:
        """Return the states that every rank has to make before one saves them."""
        inside = [node for node in ast.walk(save) if self._is_models(node)]
        named = [item for item in self.saved(save) if self.ways(item) == {"fully_shard"}]
        return [*inside, *named]  # type: ignore[list-item]

    def _within(self, node: ast.expr, seen: set[ast.expr]) -> Iterator[ast.Call]:
        if node in seen:
            return
        seen.add(node)
        made = self.values.nodes(node)
        if all(map(self._is_state, made)):  # else it is made whole on some way
            yield from (item for item in made if isinstance(item, ast.Call))
        held = self.values.stored(node) if isinstance(node, ast.Name) else []
        for whole in made:
            if isinstance(whole, ast.Dict):
                held += whole.values
            elif isinstance(whole, ast.Call) and ast.unparse(whole.func) == "dict":
                held += [item.value for item in whole.keywords]
            else:
                held += getattr(whole, "elts", [])
        for item in held:
            yield from self._within(item, seen)

    def _is_state(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and last(self.code.name(node.func)) == "state_dict"

    def _is_models(self, node: ast.AST) -> bool:
        """Return whether it is the state of what may be a sharded model, as far as names tell: of
        no optimizer, nor of an object of a class, such as a schedule or a model."""
        if not (isinstance(node, ast.Call) and self._is_state(node)):
            return False
        holder = self.values.nodes(getattr(node.func, "value", None))
        calls = [item for item in holder if isinstance(item, ast.Call)]
        classes = (last(self.code.name(call.func))[:1].isupper() for call in calls)
        others = any(classes) or not {*optimizers(self.code)}.isdisjoint(calls)
        return bool(self.ways(node)) or not others


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
    if isinstance(node, (ast.Name, ast.Attribute)):
        arguments = values.arguments(node)
        passed = [value for _, value in arguments]
        here = [(call, value) for value in values.reaching(node) if value not in passed]
        for outer, value in (*here, *arguments):
            yield from _takes(values, outer, value, seen)
    for child in ast.iter_child_nodes(node):
        yield from _takes(values, call, child, seen)


def _lifted(values: Values, call: ast.Call, model: ast.expr, seen: set[ast.Call]) -> Iterator[_Use]:
    """Yield a call with the model that it is given, and where that is a parameter, who gives it."""
    if call in seen:
        return
    seen.add(call)
    yield call, model
    for outer, argument in values.arguments(model):
        yield from _lifted(values, outer, argument, seen)
