"""What a program with DistributedDataParallel or FSDP must do besides wrapping its model."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import LOCAL_RANK, RANK, SIZE, Flow
from distrain_nb.program.advice.guards import Guards, unguarded_saves
from distrain_nb.program.advice.reading import given, keyword, last
from distrain_nb.program.advice.training import is_cared_for, pinned, uses_cuda, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_FSDP = ("FullyShardedDataParallel", "fully_shard")
_STARTS = ("init_process_group", "init_device_mesh", "init_distributed")
_SET_UP = re.compile(r"set_?up|init.*(dist|process|group|torch)|(dist|ddp).*init", re.I)
_SHARES = ("split_dataset_by_node", "split_by_node", "split_by_worker")


def pytorch(code: Code) -> Iterator[Note]:
    """What is missing around DDP and FSDP; nothing where a library sees to it."""
    wraps = [c for c in code.called("DistributedDataParallel", *_FSDP) if code.runs(c)]
    if not wraps or is_cared_for(code):
        return
    first = wraps[0].lineno
    if not (code.called(*_STARTS) or _starts_elsewhere(code)):
        yield warning(
            "ddp.process-group",
            first,
            "no process group is started: before this write torch.distributed.init_process_group()",
        )
    yield from _device(code, first)
    yield from _loaders(code)
    yield from _epochs(code)
    guards = Guards(code)
    for call in unguarded_saves(guards):
        yield warning(
            "ddp.checkpoint",
            call.lineno,
            "every rank saves here, one over the other: put it under "
            "if torch.distributed.get_rank() == 0:",
        )
    yield from _lonely_state(code, guards)


def _starts_elsewhere(code: Code) -> bool:
    """Whether an imported function is called that seems to start the group."""
    names = [last(code.name(call.func)) for call in code.calls if code.body_of(call) is None]
    return any(map(_SET_UP.search, names))


def _device(code: Code, line: int) -> Iterator[Note]:
    way = pinned(code) if uses_cuda(code) else "local"
    write = 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))'
    if way == "rank":
        yield warning(
            "ddp.device",
            line,
            "GPUs are chosen by rank, which goes beyond the GPUs of a second machine: "
            f"use the local rank: {write}",
        )
    elif not way:
        yield warning("ddp.device", line, f"every rank uses the same GPU: before this, {write}")


def _loaders(code: Code) -> Iterator[Note]:
    """Loaders that give every rank the same data."""
    if code.called(*_SHARES) or _seeded_by_rank(code):
        return
    loaders = code.called("DataLoader")
    alone = [call for call in loaders if not _is_shared(code, call)]
    for call in alone:
        if len(alone) == len(loaders) or _is_true(keyword(call, "shuffle")):
            yield warning(
                "ddp.sampler",
                call.lineno,
                "every rank reads all of the data: give the loader "
                "sampler=torch.utils.data.DistributedSampler(dataset) instead of shuffle=True",
            )


def _is_shared(code: Code, loader: ast.Call) -> bool:
    if any(k.arg is None for k in loader.keywords):
        return True  # **options, which may hold a sampler
    sampler = keyword(loader, "sampler", "batch_sampler")
    if sampler is not None and not (isinstance(sampler, ast.Constant) and sampler.value is None):
        return True
    flow = Flow(code, (RANK, LOCAL_RANK, SIZE), through=True)
    data = loader.args[:1] or [n for n in [keyword(loader, "dataset")] if n is not None]
    return len(loader.args) > 3 or any(map(flow.holds, data))


def _seeded_by_rank(code: Code) -> bool:
    """Whether each rank draws data of its own."""
    rank = Flow(code, (RANK, LOCAL_RANK))
    seeds = code.called("manual_seed", "seed", "default_rng", "seed_all")
    return any(rank.holds(node) for call in seeds for node in given(call))


def _epochs(code: Code) -> Iterator[Note]:
    samplers = code.called("DistributedSampler")
    shuffled = [call for call in samplers if not _is_false(keyword(call, "shuffle"))]
    told = code.says("set_epoch") or any(_handed_on(code, call) for call in shuffled)
    if shuffled and _has_epochs(code) and not told:
        yield warning(
            "ddp.set-epoch",
            shuffled[0].lineno,
            "every epoch has the same order: at the start of each write sampler.set_epoch(epoch)",
        )


def _handed_on(code: Code, sampler: ast.Call) -> bool:
    """Whether a sampler goes to an imported function, which may set its epoch."""
    outer = code.parents[sampler]
    name = ast.unparse(outer.targets[0]) if isinstance(outer, ast.Assign) else ""
    return any(
        name in map(ast.unparse, given(call))
        for call in code.calls
        if code.body_of(call) is None and last(code.name(call.func)) not in ("DataLoader", "len")
    )


def _has_epochs(code: Code) -> bool:
    """Whether the data are gone through more than once, as far as names and loops tell."""
    loops = [node for node in code.nodes if isinstance(node, (ast.For, ast.While))]
    named = any(
        isinstance(loop, ast.For)
        and "epoch" in f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}".lower()
        for loop in loops
    )
    return named or any(outer in loops for loop in loops for outer, _ in code.around(loop))


def _lonely_state(code: Code, guards: Guards) -> Iterator[Note]:
    """FSDP gathers a model's state from all ranks, so that one rank alone waits for ever."""
    if not code.called(*_FSDP):
        return
    for call in code.called("state_dict"):
        sharded = isinstance(call.func, ast.Attribute) and _sharded(code, call.func.value)
        if sharded and guards.guarded(call):
            yield warning(
                "fsdp.state-dict",
                call.lineno,
                "rank 0 waits here for the others' parts for ever: call state_dict() on "
                "every rank, and save on rank 0 only",
            )


def _sharded(code: Code, model: ast.expr) -> bool:
    text = ast.unparse(model)
    makers = code.called(*_FSDP)
    wrapped = {ast.unparse(call.args[0]) for call in code.called("fully_shard") if call.args}
    assigned = {
        ast.unparse(node.targets[0])
        for node in code.nodes
        if isinstance(node, ast.Assign) and node.value in makers
    }
    return text in wrapped | assigned


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
