"""Facts of the data that this rank reads by PyTorch's loaders: indices and the samples' contents.

Of the first batches of an epoch, each sample leaves its index in the whole dataset and a number of
its contents. Both are there when the loader hands the batch over: nothing is read for them. Only
the first epochs are followed, and at most `MOST_SAMPLES` of each.
"""

from __future__ import annotations

import functools
import sys
import zlib
from collections import deque
from threading import get_ident
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from distrain_nb.worker.facts.record import EPOCH, LOADER, RECORD, SAMPLES, TROUBLE, packed
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.projections import row_projections
from distrain_nb.worker.rank.stacks import place
from distrain_nb.worker.rank.weights import WATCH

FOLLOWED_EPOCHS, MOST_BATCHES, MOST_SAMPLES = 2, 32, 512
_NOTED_AT = (2, 16, MOST_BATCHES)  # batches
_MOST_LEAVES = 2
MOST_LOADERS = 32


class _Loader:
    """A loader of the program, by the line that reads it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epochs = 0


class _Epoch:
    """One pass over a loader."""

    def __init__(self, loader: _Loader, number: int, sampling: Any) -> None:
        self.loader, self.number, self.sampling = loader, number, sampling
        self.steps = WATCH.steps
        self.batches = 0
        self.followed = MOST_BATCHES if number <= FOLLOWED_EPOCHS else 0
        self._requested: Deque[List[Any]] = deque()
        self._indices: List[int] = []
        self._contents: List[float] = []

    def request(self, indices: Any, dataset: Any) -> None:
        """Note the indices of a batch that the loader asks for."""
        base = _base(dataset)
        plain = isinstance(indices, (list, tuple)) and all(type(i) is int for i in indices)
        self._requested.append([base(i) for i in indices] if plain else [])

    def batch(self, batch: Any) -> None:
        """Note one of the first batches, when the program gets it."""
        indices = self._requested.popleft() if self._requested else []
        room = MOST_SAMPLES - len(self._contents)
        if room > 0:
            leaves = _leaves(batch)
            count = len(indices) or (len(leaves[0]) if leaves else 0)
            alike = [leaf for leaf in leaves if len(leaf) == count][:_MOST_LEAVES]
            if count and alike:
                self._contents += row_projections([leaf[:room] for leaf in alike], min(room, count))
                self._indices += indices[:room] or [-1] * min(room, count)
        if self.batches in _NOTED_AT:
            self.note()

    def note(self) -> None:
        RECORD.note(
            SAMPLES,
            of=self.loader.name,
            epoch=self.number,
            batches=self.batches,
            began=self.steps,
            steps=WATCH.steps,
            indices=self._indices,
            contents=packed(self._contents),
        )

    def end(self) -> None:
        """Note that the loader has no more batches."""
        if self.number <= FOLLOWED_EPOCHS or not self.number & (self.number - 1):
            if self.batches < self.followed:
                self.note()
            RECORD.note(
                EPOCH,
                of=self.loader.name,
                epoch=self.number,
                batches=self.batches,
                began=self.steps,
                steps=WATCH.steps,
                place=place(),
            )


class Samples:
    """The loaders of a run."""

    def __init__(self) -> None:
        self._loaders: Dict[Tuple[str, int], _Loader] = {}
        self._names: Dict[str, int] = {}
        self.lines: Dict[int, str] = {}  # that make loaders
        self.splits: Dict[int, Tuple[Any, str]] = {}  # the indices of random splits, and the lines

    def epoch(self, iterator: Any, loader: Any) -> None:
        """Begin an epoch of a loader."""
        where = place()
        # A program may make a loader for each epoch.
        key = (where, id(loader.dataset))
        if key not in self._loaders:
            if len(self._loaders) == MOST_LOADERS:
                return
            number = self._names[where] = self._names.get(where, 0) + 1
            entry = self._loaders[key] = _Loader(f"{where} ({number})")
            made_at = self.lines.get(id(loader), where)
            RECORD.note(
                LOADER, of=entry.name, read_at=where, made_at=made_at, **self._description(loader)
            )
        entry = self._loaders[key]
        entry.epochs += 1
        epoch = _Epoch(entry, entry.epochs, iterator._sampler_iter)
        for indices in getattr(iterator, "_distrain_early", ()):
            if epoch.followed:
                epoch.request(indices, loader.dataset)
        iterator._distrain_epoch = epoch

    def _description(self, loader: Any) -> Dict[str, Any]:
        sampler = _innermost(loader)
        dataset = loader.dataset
        subset, split_at = _subset(dataset), ""
        if subset is not None:
            split_at = self.splits.get(id(dataset.indices), (None, ""))[1]
        return {
            "dataset": type(dataset).__name__,
            "size": _size(dataset),
            "drawn": _size(sampler),
            "sampler": type(sampler).__name__,
            "shuffles": getattr(sampler, "shuffle", None),
            "replicas": _replicas(loader, sampler),
            "replica": getattr(sampler, "rank", None),
            "subset": subset,
            "split_at": split_at,
        }


SAMPLES_OF_RUN = Samples()


def begin() -> None:
    """Follow the loaders of a run from its beginning."""
    SAMPLES_OF_RUN.__init__()  # type: ignore[misc]


def install() -> None:
    """Have PyTorch tell of loaders, once for all runs of this process."""
    on_import(
        {
            "torch.utils.data.dataloader": _change_loaders,
            "torch.utils.data.dataset": _change_split,
        }
    )


def _innermost(loader: Any) -> Any:
    """Return the sampler that chooses single samples: libraries wrap it in batch samplers."""
    sampler = getattr(loader, "batch_sampler", None)
    for _ in range(4):
        inner = getattr(sampler, "batch_sampler", None) or getattr(sampler, "sampler", None)
        if inner is None:
            break
        sampler = inner
    return sampler if sampler is not None else getattr(loader, "sampler", None)


def _replicas(loader: Any, sampler: Any) -> int:
    """Return into how many shares the samplers of a loader part its dataset; 1 for none."""
    layers = (sampler, getattr(loader, "batch_sampler", None), loader)
    numbers = [
        getattr(layer, name, None) for layer in layers for name in ("num_replicas", "num_processes")
    ]
    return max((number for number in numbers if isinstance(number, int)), default=1)


def _size(sized: Any) -> Optional[int]:
    try:
        return len(sized)
    except Exception:
        return None


def _subset(dataset: Any) -> Optional[str]:
    """Return what tells the indices of a part of a dataset from those of another part."""
    indices = getattr(dataset, "indices", None)
    if type(dataset).__name__ != "Subset" or indices is None:
        return None
    chosen = indices[:: max(1, len(indices) // MOST_SAMPLES)]
    text = ",".join(str(int(index)) for index in chosen)
    return f"{len(indices)} of {_size(dataset.dataset)}: {zlib.crc32(text.encode()):08x}"


def _base(dataset: Any) -> Callable[[int], int]:
    """Return a function from an index to that in the dataset of which this one is a part."""
    if type(dataset).__name__ != "Subset":
        return lambda index: index
    inner = _base(dataset.dataset)
    return lambda index: inner(int(dataset.indices[index]))


def _leaves(batch: Any) -> List[Any]:
    """Return the tensors of a batch that have a row for each sample, on the CPU."""
    torch: Any = sys.modules["torch"]
    if isinstance(batch, torch.Tensor):
        plain = batch.is_cpu and batch.dim() and batch.layout is torch.strided
        return [batch] if plain and not batch.is_complex() else []
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return [leaf for part in batch[:8] for leaf in _leaves(part)]
    return []


# -- hooks ----------------------------------------------------------------------------------------


def _noted(function: Callable[..., None], *arguments: Any) -> None:
    """Call what notes data; an error of its own ends the record, never the program."""
    try:
        function(*arguments)
    except Exception as error:
        RECORD.note(TROUBLE, error=repr(error))
        RECORD.thread = 0


def _change_loaders(module: Any) -> None:
    iterator, loader = module._BaseDataLoaderIter, module.DataLoader
    init, begin_epoch = loader.__init__, loader.__iter__

    @functools.wraps(init)
    def initialized(self: Any, *arguments: Any, **named: Any) -> None:
        if get_ident() == RECORD.thread:
            SAMPLES_OF_RUN.lines[id(self)] = place()
        init(self, *arguments, **named)

    @functools.wraps(begin_epoch)
    def begun(self: Any) -> Any:
        started = begin_epoch(self)
        if get_ident() == RECORD.thread and isinstance(started, iterator):
            _noted(SAMPLES_OF_RUN.epoch, started, self)
        return started

    loader.__init__, loader.__iter__ = initialized, begun
    _change_iterators(iterator)


def _change_iterators(iterator: Any) -> None:
    next_index, following = iterator._next_index, iterator.__next__

    @functools.wraps(next_index)
    def index(self: Any) -> Any:
        indices = next_index(self)
        if get_ident() == RECORD.thread:
            epoch = getattr(self, "_distrain_epoch", None)
            if epoch is not None and epoch.sampling is self._sampler_iter:
                if epoch.batches < epoch.followed:
                    _noted(epoch.request, indices, self._dataset)
            elif getattr(self, "_distrain_sampling", None) is self._sampler_iter:
                self._distrain_early.append(indices)
            else:  # workers are asked before the program has the iterator
                self._distrain_sampling, self._distrain_early = self._sampler_iter, [indices]
        return indices

    @functools.wraps(following)
    def next_batch(self: Any) -> Any:
        epoch = getattr(self, "_distrain_epoch", None)
        if epoch is None or get_ident() != RECORD.thread:
            return following(self)
        try:
            batch = following(self)
        except StopIteration:
            _noted(epoch.end)
            raise
        epoch.batches += 1
        if epoch.batches <= epoch.followed:
            _noted(epoch.batch, batch)
        return batch

    iterator._next_index, iterator.__next__ = index, next_batch


def _change_split(module: Any) -> None:
    split = module.random_split

    @functools.wraps(split)
    def random_split(*arguments: Any, **named: Any) -> Any:
        subsets = split(*arguments, **named)
        if get_ident() == RECORD.thread:
            where = place()
            for subset in subsets:
                SAMPLES_OF_RUN.splits[id(subset.indices)] = (subset.indices, where)
        return subsets

    module.random_split = random_split
    package = sys.modules.get("torch.utils.data")
    if hasattr(package, "random_split"):  # it was imported before
        package.random_split = random_split  # type: ignore[union-attr]
