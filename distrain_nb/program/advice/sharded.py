"""What FSDP asks of a program: its state is in parts, and its parameters are not the model's."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.program.advice.guards import unguarded_saves
from distrain_nb.program.advice.reading import given, keyword, last
from distrain_nb.program.advice.training import optimizers, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.guards import Guards
    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

WRAPS = ("FullyShardedDataParallel", "fully_shard")

_RANK_0 = "if torch.distributed.get_rank() == 0: torch.save(state, …)"
_FULL = (
    "torch.distributed.checkpoint.state_dict.get_model_state_dict({}, "
    "options=StateDictOptions(full_state_dict=True, cpu_offload=True))"
)
# Each of these needs all ranks, whatever the model's state is.
_TOGETHER = ("optim_state_dict", "full_optim_state_dict", "summon_full_params", "full_tensor")


def sharded(code: Code, guards: Guards) -> Iterator[Note]:
    """What is wrong around FSDP and `fully_shard`."""
    if not code.called(*WRAPS):
        return
    for call in code.called("state_dict", *_TOGETHER):
        if guards.guarded(call) and _needs_all(code, call):
            yield _alone(code, call)
    yield from _stale(code)


def saves(guards: Guards) -> Iterator[Note]:
    """The places where every rank saves to one file."""
    code = guards.code
    for call in unguarded_saves(guards):
        parts = [c for c in ast.walk(call) if isinstance(c, ast.Call) and _is_state(code, c)]
        if parts and code.called(*WRAPS):
            yield warning(
                "fsdp.state-dict",
                call.lineno,
                "every rank saves here, one over the other. The state is gathered from all ranks, "
                f"so first, on every rank, state = {_gathered(code, parts[0])}, then {_RANK_0}",
            )
        else:
            yield warning(
                "ddp.checkpoint",
                call.lineno,
                "every rank saves here, one over the other: put it under "
                "if torch.distributed.get_rank() == 0:",
            )


def _is_state(code: Code, call: ast.Call) -> bool:
    return last(code.name(call.func)) == "state_dict" and not _is_optimizer(code, call)


def _is_optimizer(code: Code, call: ast.Call) -> bool:
    made = {_target(code, each) for each in optimizers(code)}
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in made


def _gathered(code: Code, call: ast.Call) -> str:
    """What gives the whole state on rank 0 when all ranks call it."""
    return _full(call) if code.called("fully_shard") else ast.unparse(call)


def _full(call: ast.Call) -> str:
    model = call.func.value if isinstance(call.func, ast.Attribute) else call
    return _FULL.format(ast.unparse(model))


def _needs_all(code: Code, call: ast.Call) -> bool:
    if last(code.name(call.func)) in _TOGETHER:
        return True
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in _models(code)


def _alone(code: Code, call: ast.Call) -> Note:
    if last(code.name(call.func)) == "state_dict" and code.called("fully_shard"):
        why = "this has rank 0's parts of the weights only: on every rank write"
        message = f"{why} state = {_full(call)}, then {_RANK_0}"
    else:
        message = (
            "rank 0 waits here for the others' parts for ever: call "
            f"{last(code.name(call.func))}() on every rank, and save on rank 0 only"
        )
    return warning("fsdp.state-dict", call.lineno, message)


def _models(code: Code) -> set[str]:
    """The texts of the models that are sharded."""
    wrapped = {ast.unparse(call.args[0]) for call in code.called("fully_shard") if call.args}
    return wrapped | {_target(code, call) for call in code.called(*WRAPS)} - {""}


def _stale(code: Code) -> Iterator[Note]:
    """Optimizers of the parameters that a model had before, which FSDP puts others in place of."""
    for wrap in code.called(*WRAPS):
        if not wrap.args or _keeps_parameters(wrap):
            continue
        model = ast.unparse(wrap.args[0])
        made = [o for o in optimizers(code) if code.function_of(o) is code.function_of(wrap)]
        again = {_target(code, o) for o in made if o.lineno > wrap.lineno}
        for call in made:
            before = call.lineno < wrap.lineno and _target(code, call) not in again
            if before and _takes(code, call, model):
                yield warning(
                    "fsdp.optimizer",
                    call.lineno,
                    "this optimizer has the parameters from before FSDP, so that its steps change "
                    f"nothing: make it after {ast.unparse(wrap)}",
                )


def _keeps_parameters(wrap: ast.Call) -> bool:
    kept = keyword(wrap, "use_orig_params")
    return isinstance(kept, ast.Constant) and kept.value is True


def _takes(code: Code, optimizer: ast.Call, model: str) -> bool:
    """Whether an optimizer gets a model's parameters, directly or by a name for them."""
    given_texts = set(map(ast.unparse, given(optimizer)))
    named = [
        node.value
        for node in code.nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in given_texts
    ]
    inside = (each for argument in [*given(optimizer), *named] for each in ast.walk(argument))
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("parameters", "named_parameters")
        and ast.unparse(node.value) == model
        for node in inside
    )


def _target(code: Code, call: ast.Call) -> str:
    """The name that what a call makes is given; empty if it has none."""
    outer = code.parents.get(call)
    return ast.unparse(outer.targets[0]) if isinstance(outer, ast.Assign) else ""
