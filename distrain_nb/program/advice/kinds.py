"""What a loader's dataset is: indexed, iterated over, or shared among the ranks by itself."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import given, is_constant, keyword, last
from distrain_nb.program.advice.values import Values

if TYPE_CHECKING:
    from distrain_nb.program.advice.reading import Code

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


def kind_of(code: Code, loader: ast.Call) -> str:
    """The kind of what a loader reads, `UNKNOWN` where it may be one or another."""
    found = _Kinds(code, Values(code)).of(*dataset(loader))
    if SHARED in found:
        return SHARED
    kind = found.pop() if len(found) == 1 else UNKNOWN
    shuffles = is_constant(keyword(loader, "shuffle"), True)
    # PyTorch shuffles nothing that is iterated over.
    return INDEXED if shuffles and not kind else kind


def dataset(loader: ast.Call) -> list[ast.expr]:
    """What a loader is to read, if it says so."""
    return loader.args[:1] or [n for n in [keyword(loader, "dataset")] if n is not None]


@dataclass(frozen=True)
class _Kinds:
    """The kinds that an expression may be of; `seen` is what has been looked at for that."""

    code: Code
    values: Values
    seen: set[ast.expr] = field(default_factory=set)

    def of(self, *nodes: ast.expr) -> set[str]:
        made = [each for node in nodes for each in self.values.nodes(node)]
        return {kind for each in made for kind in self._of(each)}

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
            return self._joined(call) or {_JOINED[last(name)]}
        kind = self._named(name)
        if not kind and isinstance(call.func, ast.Attribute):
            return self.of(call.func.value)  # `data.shuffle()` is of the kind of `data`
        return {SHARED if kind == PIPE and self.code.says("sharding_filter") else kind}

    def _loaded(self, call: ast.Call) -> str:
        if any(k.arg is None for k in call.keywords):
            return HUB
        stream = self.values.nodes(keyword(call, "streaming"))
        said = {node.value if isinstance(node, ast.Constant) else None for node in stream}
        return INDEXED if said <= {False} else STREAMED if said == {True} else HUB

    def _joined(self, call: ast.Call) -> set[str]:
        parts = [node for each in given(call) for node in self.values.nodes(each)]
        items = (node.elts for node in parts if isinstance(node, (ast.List, ast.Tuple)))
        return self.of(*(each for elements in items for each in elements)) - {UNKNOWN}

    def _named(self, name: str, below: frozenset[str] = frozenset()) -> str:
        """The kind that a class has by its name, or by its bases; a function likewise."""
        made = self.code.classes.get(last(name))
        if made is None:
            begun = (kind for start, kind in _BY_BEGINNING.items() if name.startswith(start))
            is_torchs = name.startswith("torch.") or "." not in name
            return next(begun, _OF_TORCH.get(last(name), UNKNOWN) if is_torchs else UNKNOWN)
        below |= {made.name}
        bases = [each for each in map(self.code.name, made.bases) if last(each) not in below]
        known = (kind for each in bases if (kind := self._named(each, below)))
        return next(known, INDEXED if _is_indexed(made) else UNKNOWN)


def _is_indexed(made: ast.ClassDef) -> bool:
    return any(
        isinstance(each, ast.FunctionDef) and each.name == "__getitem__" for each in made.body
    )
