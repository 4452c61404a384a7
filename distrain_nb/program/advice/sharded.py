"""What FSDP asks of a program: its state is in parts, which all ranks gather, and the parameters
that its models had before are no longer theirs."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

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
# What gives the model that it is called on, or is given.
_SAME = frozenset(
    ("to", "cuda", "cpu", "train", "eval", "compile", "bfloat16", "half", "float", "requires_grad_")
)
_PARAMETERS = ("parameters", "named_parameters")
# Each of these needs all ranks, whatever the model's state is.
_TOGETHER = ("optim_state_dict", "full_optim_state_dict", "summon_full_params", "full_tensor")


def sharded(code: Code) -> Iterator[Note]:
    """What is wrong with the state of models under FSDP and `fully_shard` on one rank."""
    if not code.called(*WRAPS):
        return
    states = _States(code)
    written = {state for save in saves(code, guarded=True) for state in states.saved(save)}
    for call in code.called("state_dict"):
        ways, guarded = states.ways(call), is_guarded(code, call)
        if "fully_shard" in ways and (guarded or (call in written and len(ways) == 1)):
            yield warning("fsdp.state-dict", call.lineno, _in_parts(call, waits=len(ways) > 1))
        elif ways and guarded:
            yield _alone(code, call)
    for call in code.called(*_TOGETHER):
        if is_guarded(code, call):
            yield _alone(code, call)


def _alone(code: Code, call: ast.Call) -> Note:
    return warning(
        "fsdp.state-dict",
        call.lineno,
        "rank 0 waits here for the others' parts for ever: call "
        f"{last(code.name(call.func))}() on every rank, and save on rank 0 only",
    )


def _in_parts(call: ast.Call, *, waits: bool) -> str:
    why = "this has one rank's parts of the weights only"
    why += ", or waits for the others' for ever" if waits else ""
    return f"{why}: on every rank write state = {_full(call)}, then {_RANK_0}"


def saved(code: Code) -> Iterator[Note]:
    """The places where every rank saves to one file."""
    states = _States(code)
    for call in saves(code, guarded=False):
        parts = states.parts(call) if code.called(*WRAPS) else []
        if parts:
            yield warning(
                "fsdp.state-dict",
                call.lineno,
                "every rank saves here, one over the other. The state is gathered from all ranks, "
                f"so first, on every rank, state = {states.gathered(parts[0])}, then {_RANK_0}",
            )
        else:
            yield warning(
                "ddp.checkpoint",
                call.lineno,
                "every rank saves here, one over the other: put it under "
                "if torch.distributed.get_rank() == 0:",
            )


@dataclass(frozen=True, eq=False)
class _States:
    """Tells of calls of `state_dict` what they give."""

    code: Code
    values: Values = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Values(self.code, _SAME))

    def ways(self, call: ast.Call) -> set[str]:
        """How the model that a call belongs to is sharded: the wraps that it may have got."""
        if not isinstance(call.func, ast.Attribute):
            return set()
        made = self.values.of(call.func.value)
        calls = [each.node for each in made if isinstance(each.node, ast.Call)]
        found = {last(self.code.name(each.func)) for each in calls} & set(WRAPS)
        keys = {each.key for each in made}
        for wrap in self.code.called("fully_shard"):
            models = [*wrap.args[:1], *filter(None, [keyword(wrap, "module")])]
            if self._comes_later(wrap, call) or self.code.apart(wrap, call):
                continue
            if any(each.key in keys for model in models for each in self.values.of(model)):
                found.add("fully_shard")
        return found

    def saved(self, save: ast.Call) -> list[ast.Call]:
        """The states that a save writes as they are, by names and in dictionaries too."""
        if not save.args or self.code.says("full_tensor"):
            return []
        return list(self._within(save.args[0], set()))

    def parts(self, save: ast.Call) -> list[ast.Call]:
        """The states that every rank has to make before one saves them."""
        inside = [each for each in ast.walk(save) if self._is_models(each)]
        named = [each for each in self.saved(save) if self.ways(each) == {"fully_shard"}]
        return [*inside, *named]  # type: ignore[list-item]

    def gathered(self, call: ast.Call) -> str:
        """What gives the whole state on rank 0 when all ranks call it."""
        return _full(call) if self.code.called("fully_shard") else ast.unparse(call)

    def _within(self, node: ast.expr, seen: set[ast.expr]) -> Iterator[ast.Call]:
        if node in seen:
            return
        seen.add(node)
        made = self.values.nodes(node)
        if all(map(self._is_state, made)):  # else it is made whole on some way
            yield from (each for each in made if isinstance(each, ast.Call))
        held = self.values.stored(node) if isinstance(node, ast.Name) else []
        held += [each for whole in made for each in _held(whole)]
        for each in held:
            yield from self._within(each, seen)

    def _is_state(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and last(self.code.name(node.func)) == "state_dict"

    def _is_models(self, node: ast.AST) -> bool:
        """Whether it is the state of what may be a sharded model, as far as names tell."""
        if not (isinstance(node, ast.Call) and self._is_state(node)):
            return False
        if self.ways(node):
            return True
        holder = self.values.nodes(node.func.value) if isinstance(node.func, ast.Attribute) else []
        return not any(self._is_other(each) for each in holder)

    def _is_other(self, node: ast.expr) -> bool:
        """Whether it is an optimizer, or an object of a class, such as a schedule or a model."""
        if not isinstance(node, ast.Call):
            return False
        return node in optimizers(self.code) or last(self.code.name(node.func))[:1].isupper()

    def _comes_later(self, wrap: ast.Call, call: ast.Call) -> bool:
        same = self.code.function_of(wrap) is self.code.function_of(call)
        loops = (ast.For, ast.While)
        within = {outer for outer, _ in self.code.around(wrap) if isinstance(outer, loops)}
        again = any(outer in within for outer, _ in self.code.around(call))
        return same and not again and wrap.lineno > call.lineno


def _held(node: ast.expr) -> list[ast.expr]:
    """What a dictionary, a list or a tuple that is written out holds."""
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [each.value for each in node.keywords]
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else []


def _full(call: ast.Call) -> str:
    model = call.func.value if isinstance(call.func, ast.Attribute) else call
    return _FULL.format(ast.unparse(model))


# -- optimizers of the parameters that a model had before --------------------------------------


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
