"""What a program with DistributedDataParallel or FSDP must do besides wrapping its model, above all
give each rank data of its own."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import RANK, SIZE, Flow, Origin
from distrain_nb.program.advice.reading import given, is_constant, keyword, last
from distrain_nb.program.advice.sharded import WRAPS, saved, sharded, stale
from distrain_nb.program.advice.training import is_cared_for, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

# A split by worker is none by rank: it is among the processes of one rank's loader.
_SHARES = ("split_dataset_by_node", "split_by_node")
_ALL = "every rank reads all of the data"
_SPLIT = (
    "an IterableDataset takes no sampler: in its __iter__ write itertools.islice(items, "
    'int(os.environ["RANK"]), None, int(os.environ["WORLD_SIZE"])), and end after as many batches'
    " on every rank"
)
# By full names of what a loader's data are made of, the first that fits: what to write. Nothing for
# those that share themselves out: ours, MosaicML's, litdata's; WebDataset refuses to guess.
_DATA = (
    (r".*\b(ResampledShards|sharding_filter)", "", ""),
    (
        r"webdataset\.DataPipeline",
        "iterable",
        f"{_ALL}: put wds.split_by_node behind the list of shards",
    ),
    (r"(distrain_nb|streaming|litdata|webdataset)\..+", "", ""),
    (
        r"datasets\..+|.*\b(load_dataset|to_iterable_dataset)",
        "iterable",
        f"{_ALL}: write dataset = datasets.distributed.split_dataset_by_node(dataset, "
        'rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))',
    ),
    (r".*\b(IterableDataset|ChainDataset)", "iterable", f"{_ALL}, and {_SPLIT}"),
    (
        "",
        "sampler",
        f"{_ALL}: give the loader sampler=torch.utils.data.DistributedSampler(dataset) instead of"
        f" shuffle=True; {_SPLIT}",
    ),
)


def pytorch(code: Code) -> Iterator[Note]:
    """Yield what is missing around DDP and FSDP; nothing where a library does it."""
    wraps = code.called("DistributedDataParallel", *WRAPS)
    if not any(map(code.runs, wraps)) or is_cared_for(code):
        return
    for check in (_loaders, _epochs, saved, sharded, stale):
        yield from check(code)


def _by_rank(code: Code) -> Flow:
    return Flow(code, RANK | SIZE, through=True)


def _loaders(code: Code) -> Iterator[Note]:
    rank = Flow(code, RANK)
    seeds = code.called("manual_seed", "seed", "default_rng", "seed_all")
    draws_apart = any(rank.holds(node) for call in seeds for node in given(call))
    if draws_apart or any(map(code.says, _SHARES)):
        return
    loaders = [c for c in code.called("DataLoader", "WebLoader") if not _is_of_one(code, c)]
    alone = [call for call in loaders if not _is_shared(code, call)]
    for call in alone:
        if len(alone) == len(loaders) or is_constant(keyword(call, "shuffle"), True):
            kind, write = _lacks(code, call)
            if kind:
                yield warning(f"ddp.{kind}", call.lineno, write)


def _is_of_one(code: Code, loader: ast.Call) -> bool:
    """Return whether the rank decides that a loader is made: `if rank == 0:` evaluates alone."""
    by_rank = Flow(code, RANK, through=True)
    return any(by_rank.holds(test) for test in code.conditions(loader))


def _is_shared(code: Code, loader: ast.Call) -> bool:
    if any(k.arg is None for k in loader.keywords):
        return True  # **options, which may hold a sampler
    if any(map(_by_rank(code).holds, dataset(loader))):
        return True
    sampler = keyword(loader, "sampler", "batch_sampler")
    return len(loader.args) > 3 if sampler is None else not is_constant(sampler, None)


def _lacks(code: Code, loader: ast.Call) -> tuple[str, str]:
    """Return by which data each rank of a loader reads all, and what to write."""
    flow = Flow(code, Origin(), through=True)
    names = {code.name(node) for item in dataset(loader) for node in flow.reached(item)} | {""}
    fits = (
        (kind, write)
        for names_of, kind, write in _DATA
        if any(map(re.compile(names_of).fullmatch, names))
    )
    return next(fits)


def _epochs(code: Code) -> Iterator[Note]:
    samplers = code.called("DistributedSampler")
    shuffled = [call for call in samplers if not is_constant(keyword(call, "shuffle"), False)]
    # An imported function that gets a sampler may set its epoch.
    others = (call for call in code.calls if code.body_of(call) is None)
    others = (c for c in others if last(code.name(c.func)) not in ("DataLoader", "len"))
    handed_on = {ast.unparse(node) for call in others for node in given(call)}
    sets_epoch = code.says("set_epoch") or not handed_on.isdisjoint(map(code.target, shuffled))
    if shuffled and _has_epochs(code) and not sets_epoch:
        yield warning(
            "ddp.set-epoch",
            shuffled[0].lineno,
            "every epoch has the same order: at the start of each write sampler.set_epoch(epoch)",
        )


def _has_epochs(code: Code) -> bool:
    """Return whether the data are gone through more than once, as far as names and loops tell."""
    loops = [node for node in code.nodes if isinstance(node, (ast.For, ast.While))]
    parts = [part for n in loops if isinstance(n, ast.For) for part in (n.target, n.iter)]
    return any(map(code.loops, loops)) or any("epoch" in ast.unparse(p).lower() for p in parts)


def dataset(loader: ast.Call) -> list[ast.expr]:
    """Return the data set of a loader, if it names one."""
    return loader.args[:1] or [n for n in [keyword(loader, "dataset")] if n is not None]
