"""What a program with DistributedDataParallel or FSDP must do besides wrapping its model, above all
give each rank data of its own."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import given, is_constant, keyword, last
from distrain_nb.program.advice.sharded import WRAPS, saved, sharded, stale
from distrain_nb.program.advice.training import is_cared_for, pinned, uses_cuda, warning
from distrain_nb.program.advice.values import LOCAL_RANK, RANK, SIZE, Flow, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_STARTS = ("init_process_group", "init_device_mesh", "init_distributed")
_SET_UP = re.compile(r"set_?up|init.*(dist|process|group|torch)|(dist|ddp).*init", re.I)
# What a loader's dataset is.
UNKNOWN = ""
INDEXED = "indexed"  # a map-style dataset
ITERABLE = "iterable"
PIPE = "pipe"  # of torchdata: a loader shares it out behind its sharding_filter()
STREAMED = "streamed"  # Hugging Face's IterableDataset
HUB = "hub"  # Hugging Face's, streamed or not
SHARED = "shared"  # by itself, or its own class asks for it

_BY_BEGINNING = {
    "distrain_nb.": SHARED,
    "streaming.": SHARED,  # MosaicML's
    "litdata.": SHARED,
    "webdataset.": SHARED,
    "datasets.IterableDataset": STREAMED,
    "datasets.Dataset": INDEXED,
    "datasets.load_from_disk": INDEXED,
    "torchvision.datasets.": INDEXED,
    "torchdata.datapipes.iter.": PIPE,
    "torch.utils.data.datapipes.iter.": PIPE,
}
_OF_TORCH = {
    "IterableDataset": ITERABLE,
    "IterDataPipe": PIPE,
    **dict.fromkeys(("Dataset", "TensorDataset", "Subset", "random_split"), INDEXED),
    **dict.fromkeys(("ImageFolder", "list", "sorted", "range"), INDEXED),
}
_JOINED = {
    "ChainDataset": ITERABLE,
    "ConcatDataset": INDEXED,
    "concatenate_datasets": HUB,
    "interleave_datasets": HUB,
}

# A split by worker is none by rank: it is among the processes of one rank's loader.
_SHARES = ("split_dataset_by_node", "split_by_node")
_SPLIT = (
    'itertools.islice(items, int(os.environ["RANK"]), None, int(os.environ["WORLD_SIZE"])), '
    "and end after as many batches on every rank"
)
_BY_NODE = (
    "write dataset = datasets.distributed.split_dataset_by_node(dataset, "
    'rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))'
)
_ALL = "every rank reads all of the data"
_NO_SAMPLER = "an IterableDataset takes no sampler"
_OF_LENGTH = {
    INDEXED: f"{_ALL}: give the loader "
    "sampler=torch.utils.data.DistributedSampler(dataset) instead of shuffle=True",
    HUB: f"{_ALL}: streamed or not, {_BY_NODE}",
    UNKNOWN: "nothing here gives each rank a part of the data: for a map-style dataset give "
    "the loader sampler=torch.utils.data.DistributedSampler(dataset) instead of shuffle=True; "
    f"{_NO_SAMPLER}: in its __iter__ write {_SPLIT}",
}
_SHARDS = (
    "ranks have to share the shards: write wds.WebDataset(urls, nodesplitter=wds.split_by_node, …),"
    " or in a wds.DataPipeline put wds.split_by_node behind the list of shards"
)
_ITERATED = {
    STREAMED: f"{_ALL}, and {_NO_SAMPLER}: {_BY_NODE}",
    ITERABLE: f"{_ALL}, and {_NO_SAMPLER}: in its __iter__ write {_SPLIT}",
    PIPE: f"{_ALL}, and {_NO_SAMPLER}: write dataset = dataset.sharding_filter()",
}


def pytorch(code: Code) -> Iterator[Note]:
    """Yield what is missing around DDP and FSDP; nothing where a library does it."""
    wraps = [c for c in code.called("DistributedDataParallel", *WRAPS) if code.runs(c)]
    if not wraps or is_cared_for(code):
        return
    first = wraps[0].lineno
    # An imported function may start the group.
    imported = [last(code.name(c.func)) for c in code.calls if code.body_of(c) is None]
    if not (code.called(*_STARTS) or any(map(_SET_UP.search, imported))):
        yield warning(
            "ddp.process-group",
            first,
            "no process group is started: before this write torch.distributed.init_process_group()",
        )
    yield from _device(code, first)
    for check in (_shards, _loaders, _epochs, saved, sharded, stale):
        yield from check(code)


def _device(code: Code, line: int) -> Iterator[Note]:
    way = pinned(code) if uses_cuda(code) else "local"
    write = 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))'
    if way == "rank":
        why = "GPUs are chosen by rank, which goes beyond the GPUs of a second machine"
        yield warning("ddp.device", line, f"{why}: use the local rank: {write}")
    elif not way:
        yield warning("ddp.device", line, f"every rank uses the same GPU: before this, {write}")


def _shards(code: Code) -> Iterator[Note]:
    """WebDatasets that don't say how ranks share their shards, which most refuse to guess."""
    says_how = any(map(code.says, ("split_by_node", "ResampledShards")))
    for call in code.called("WebDataset", "DataPipeline", start="webdataset"):
        if last(code.name(call.func)) == "WebDataset":
            splits = not {k.arg for k in call.keywords}.isdisjoint(("nodesplitter", None))
        else:
            splits = says_how or any(map(_by_rank(code).holds, given(call)))
        if not splits:
            yield warning("ddp.iterable", call.lineno, _SHARDS)


def _by_rank(code: Code) -> Flow:
    return Flow(code, RANK | LOCAL_RANK | SIZE, through=True)


def _loaders(code: Code) -> Iterator[Note]:
    rank = Flow(code, RANK | LOCAL_RANK)
    seeds = code.called("manual_seed", "seed", "default_rng", "seed_all")
    draws_apart = any(rank.holds(node) for call in seeds for node in given(call))
    if draws_apart or any(map(code.says, _SHARES)):
        return
    loaders = code.called("DataLoader")
    alone = [call for call in loaders if not _is_shared(code, call)]
    for call in alone:
        kind = _kind_of(code, call)
        if kind in _ITERATED:
            yield warning("ddp.iterable", call.lineno, _ITERATED[kind])
        elif kind in _OF_LENGTH and (
            len(alone) == len(loaders) or is_constant(keyword(call, "shuffle"), True)
        ):
            yield warning("ddp.sampler", call.lineno, _OF_LENGTH[kind])


def _is_shared(code: Code, loader: ast.Call) -> bool:
    if any(k.arg is None for k in loader.keywords):
        return True  # **options, which may hold a sampler
    if any(map(_by_rank(code).holds, dataset(loader))):
        return True
    sampler = keyword(loader, "sampler", "batch_sampler")
    if sampler is None or is_constant(sampler, None):
        return len(loader.args) > 3
    return _kind_of(code, loader) not in _ITERATED


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


# -- what a loader reads --------------------------------------------------------------------------


def _kind_of(code: Code, loader: ast.Call) -> str:
    """Return the kind of what a loader reads, `UNKNOWN` where it may be one or another."""
    kinds = _Kinds(code, Values(code)).of(*dataset(loader))
    if SHARED in kinds:
        return SHARED
    kind = kinds.pop() if len(kinds) == 1 else UNKNOWN
    shuffles = is_constant(keyword(loader, "shuffle"), True)
    # PyTorch shuffles nothing that is iterated over.
    return INDEXED if shuffles and not kind else kind


def dataset(loader: ast.Call) -> list[ast.expr]:
    """Return the data set of a loader, if it names one."""
    return loader.args[:1] or [n for n in [keyword(loader, "dataset")] if n is not None]


@dataclass(frozen=True)
class _Kinds:
    """The kinds that an expression may be of; `seen` is what has been looked at for that."""

    code: Code
    values: Values
    seen: set[ast.expr] = field(default_factory=set)

    def of(self, *nodes: ast.expr) -> set[str]:
        made = [item for node in nodes for item in self.values.nodes(node)]
        return {kind for item in made for kind in self._of(item)}

    def _of(self, node: ast.expr) -> set[str]:
        if node in self.seen or is_constant(node, None):
            return set()
        self.seen.add(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.of(node.left, node.right)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        return {INDEXED if isinstance(node, (ast.List, ast.ListComp, ast.Tuple)) else UNKNOWN}

    def _of_call(self, call: ast.Call) -> set[str]:
        name = self.code.name(call.func)
        if last(name) == "load_dataset":
            return {self._loaded(call)}
        if last(name) == "to_iterable_dataset":
            return {STREAMED}
        if last(name) in _JOINED:
            parts = [node for item in given(call) for node in self.values.nodes(item)]
            items = [n for part in parts for n in getattr(part, "elts", ())]
            return self.of(*items) - {UNKNOWN} or {_JOINED[last(name)]}
        kind = self._named(name)
        if not kind and isinstance(call.func, ast.Attribute):
            return self.of(call.func.value)  # `data.shuffle()` is of the kind of `data`
        return {SHARED if kind == PIPE and self.code.says("sharding_filter") else kind}

    def _loaded(self, call: ast.Call) -> str:
        if any(k.arg is None for k in call.keywords):
            return HUB
        stream = self.values.nodes(keyword(call, "streaming"))
        constants = {node.value if isinstance(node, ast.Constant) else None for node in stream}
        return INDEXED if constants <= {False} else STREAMED if constants == {True} else HUB

    def _named(self, name: str, below: frozenset[str] = frozenset()) -> str:
        """Return the kind that a class has by its name, or by its bases; a function likewise."""
        made = self.code.classes.get(last(name))
        if made is None:
            begun = (kind for start, kind in _BY_BEGINNING.items() if name.startswith(start))
            is_torchs = name.startswith("torch.") or "." not in name
            return next(begun, _OF_TORCH.get(last(name), UNKNOWN) if is_torchs else UNKNOWN)
        below |= {made.name}
        bases = [base for base in map(self.code.name, made.bases) if last(base) not in below]
        methods = [f.name for f in made.body if isinstance(f, ast.FunctionDef)]
        known = (kind for base in bases if (kind := self._named(base, below)))
        return next(known, INDEXED if "__getitem__" in methods else UNKNOWN)
