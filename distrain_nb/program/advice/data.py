"""Whether each rank of a PyTorch program reads data of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import LOCAL_RANK, RANK, SIZE, Flow
from distrain_nb.program.advice.reading import given, keyword, last
from distrain_nb.program.advice.training import warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

# A split by worker is none by rank: it is among the processes of one rank's loader.
_SHARES = ("split_dataset_by_node", "split_by_node")
_SAMPLER = (
    "every rank reads all of the data: give the loader "
    "sampler=torch.utils.data.DistributedSampler(dataset) instead of shuffle=True"
)
_ALL = "every rank reads all of the data, and an IterableDataset takes no sampler:"
_SPLITS = {
    "streamed": f"{_ALL} write dataset = datasets.distributed.split_dataset_by_node(dataset, "
    'rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))',
    "iterable": f"{_ALL} in its __iter__ write itertools.islice(items, "
    'int(os.environ["RANK"]), None, int(os.environ["WORLD_SIZE"])), and end after as many '
    "batches on every rank",
}


def data(code: Code) -> Iterator[Note]:
    """Loaders that give every rank the same data, or the same order in every epoch."""
    yield from _shards(code)
    yield from _loaders(code)
    yield from _epochs(code)


def _shards(code: Code) -> Iterator[Note]:
    """WebDatasets that don't say how ranks share their shards, which most refuse to guess."""
    flow = Flow(code, (RANK, LOCAL_RANK, SIZE), through=True)
    for call in code.called("WebDataset", "DataPipeline", start="webdataset"):
        names = {k.arg for k in call.keywords}
        if last(code.name(call.func)) == "WebDataset":
            splits_shards = not names.isdisjoint(("nodesplitter", None))
        else:
            splits = map(code.says, ("split_by_node", "ResampledShards"))
            splits_shards = any(splits) or any(map(flow.holds, given(call)))
        if not splits_shards:
            yield warning(
                "ddp.iterable",
                call.lineno,
                "ranks have to share the shards: write "
                "wds.WebDataset(urls, nodesplitter=wds.split_by_node, …), or in a "
                "wds.DataPipeline put wds.split_by_node behind the list of shards",
            )


def _loaders(code: Code) -> Iterator[Note]:
    if any(map(code.says, _SHARES)) or _seeded_by_rank(code):
        return
    loaders = code.called("DataLoader")
    alone = [call for call in loaders if not _is_shared(code, call)]
    for call in alone:
        kind = _without_length(code, call)
        if kind in _SPLITS:
            yield warning("ddp.iterable", call.lineno, _SPLITS[kind])
        elif not kind and (len(alone) == len(loaders) or _is_true(keyword(call, "shuffle"))):
            yield warning("ddp.sampler", call.lineno, _SAMPLER)


def _is_shared(code: Code, loader: ast.Call) -> bool:
    if any(k.arg is None for k in loader.keywords):
        return True  # **options, which may hold a sampler
    flow = Flow(code, (RANK, LOCAL_RANK, SIZE), through=True)
    if any(map(flow.holds, _dataset(loader))):
        return True
    sampler = keyword(loader, "sampler", "batch_sampler")
    if sampler is None or (isinstance(sampler, ast.Constant) and sampler.value is None):
        return len(loader.args) > 3
    return not _without_length(code, loader)


def _dataset(loader: ast.Call) -> list[ast.expr]:
    return loader.args[:1] or [n for n in [keyword(loader, "dataset")] if n is not None]


def _without_length(code: Code, loader: ast.Call) -> str:
    """The kind of a loader's dataset that can only be iterated over; empty if it has a length."""
    seen: set[str] = set()
    made = _dataset(loader)
    while made:
        node = made.pop()
        kind = _kind(code, node)
        if kind:
            return kind
        text = ast.unparse(node)
        if text not in seen:
            seen.add(text)
            made += _values(code, text)
            made += _inside(node)
    return ""


def _kind(code: Code, node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name = code.name(node.func)
    if name.startswith("webdataset."):
        return "shards"
    if last(name) == "load_dataset" and _is_true(keyword(node, "streaming")):
        return "streamed"
    return "iterable" if _is_iterable(code, last(name)) else ""


def _is_iterable(code: Code, name: str) -> bool:
    """Whether a class that the code defines is an IterableDataset, itself or by its bases."""
    made = code.classes.get(name)
    bases = [last(code.name(base)) for base in made.bases] if made else []
    return any(
        base in ("IterableDataset", "IterDataPipe") or (base != name and _is_iterable(code, base))
        for base in bases
    )


def _values(code: Code, name: str) -> list[ast.expr]:
    """What a name, or an attribute, is set to anywhere."""
    return [
        node.value
        for node in code.nodes
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets)
    ]


def _inside(node: ast.expr) -> list[ast.expr]:
    """What a method is called on, or an item taken from."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [node.func.value]
    return [node.value] if isinstance(node, ast.Subscript) else []


def _seeded_by_rank(code: Code) -> bool:
    """Whether each rank draws data of its own."""
    rank = Flow(code, (RANK, LOCAL_RANK))
    seeds = code.called("manual_seed", "seed", "default_rng", "seed_all")
    return any(rank.holds(node) for call in seeds for node in given(call))


def _epochs(code: Code) -> Iterator[Note]:
    samplers = code.called("DistributedSampler")
    shuffled = [call for call in samplers if not _is_false(keyword(call, "shuffle"))]
    sets_epoch = code.says("set_epoch") or any(_handed_on(code, call) for call in shuffled)
    if shuffled and _has_epochs(code) and not sets_epoch:
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


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
