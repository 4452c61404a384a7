"""Shards for PyTorch: a dataset of batches, and a loader that goes on in mid-epoch."""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    Optional,
    Union,
)

from distrain_nb.worker.data.index import blocks_of
from distrain_nb.worker.data.order import (
    FIRST_WINDOW,
    WINDOW,
    Division,
    lane_of,
    seed_of,
    windows,
)
from distrain_nb.worker.data.rank import rank_and_world
from distrain_nb.worker.data.reading import in_batches, samples_of

try:  # loaded by those who read shards, and there without torch for TensorFlow's readers
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info
except ImportError:
    DataLoader = IterableDataset = object

    def get_worker_info() -> Any:
        return None


Transform = Optional[Callable[[Dict[str, Any]], Any]]


class ShardDataset(IterableDataset):  # type: ignore[misc,unused-ignore]
    """Batches of this rank, in an order that is the same wherever it is asked for again.

    For `DataLoader(dataset, batch_size=None)`, and for torchdata's StatefulDataLoader. Its length
    is how many batches an epoch has, on each rank the same number.
    """

    def __init__(
        self,
        shards: Union[str, Iterable[str]],
        batch_size: int,
        *,
        shuffle: Optional[int] = None,
        transform: Transform = None,
        collate: Optional[Callable[[Any], Any]] = None,
        drop_last: bool = False,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
    ) -> None:
        own_rank, of = rank_and_world()
        self.rank = own_rank if rank is None else rank
        self.world_size = of if world_size is None else world_size
        self.blocks = blocks_of(shards)
        self.samples = sum(block.samples for block in self.blocks)
        self.shuffle, self.transform, self.collate = shuffle, transform, collate
        self._division = Division(self.world_size, 1, batch_size, drop_last)
        self._first_window = FIRST_WINDOW
        self._batches = self._division.batches(self.samples)
        self.epoch = 0
        self._begin = 0  # the batch of this rank with which the next iteration begins
        self._next = 0  # … and the one that this iteration has come to

    def __len__(self) -> int:
        return self._batches

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Have the next iteration be of that epoch, from that batch of it on."""
        self.epoch, self._begin, self._next = epoch, batch, batch

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        begin, self._begin = self._begin, 0
        first = begin + worker
        for number, batch in enumerate(self._lane(first % workers, workers, first // workers)):
            self._next = begin + (number + 1) * workers
            yield self._collated(batch)

    def _lane(self, lane: int, lanes: int, done: int) -> Iterator[Any]:
        """Return the batches of a lane of this rank behind those that are done."""
        seed = seed_of(self.shuffle, self.epoch)
        division = self._division._replace(lanes=lanes)
        counts = [block.samples for block in self.blocks]
        pieces, sizes = lane_of(counts, division, self.rank, lane, seed)
        lane_seed = f"{seed} rank {self.rank} lane {lane}" if seed else ""
        ahead = windows(pieces, lane_seed, sum(sizes[:done]), self._first_window)
        samples: Iterator[Any] = samples_of(self.blocks, ahead)
        if self.transform is not None:
            samples = map(self.transform, samples)
        return in_batches(samples, sizes[done:])

    def _collated(self, batch: Any) -> Any:
        if self.collate is None:
            from torch.utils.data import default_collate

            return default_collate(batch)
        return self.collate(batch)

    def state_dict(self) -> Dict[str, Any]:
        """Return where the iteration is; in a DataLoader's worker, where that worker is."""
        return {"epoch": self.epoch, "batch": self._next, "division": self.divided()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on where another one was. Raises ValueError where that one divided other samples, or
        divided them otherwise."""
        self.go_on_as(state["division"])
        self.set_epoch(state["epoch"], state["batch"])

    def go_on_as(self, division: Dict[str, Any], **further: Any) -> None:
        """Take the order of a state, which was another in earlier versions; ValueError where that
        one divided otherwise."""
        current = {**self.divided(), **further}
        theirs = {"first_window": WINDOW, **division}
        _refuse_other({**theirs, "first_window": current["first_window"]}, current)
        self._first_window = theirs["first_window"]

    def divided(self) -> Dict[str, Any]:
        """Return the values that must be equal for an epoch to be resumed."""
        return {
            "samples": self.samples,
            "ranks": self.world_size,
            "batch_size": self._division.batch_size,
            "drop_last": self._division.drop_last,
            "shuffle": self.shuffle,
            "first_window": self._first_window,
        }

    def loader(self, workers: int = 0, **options: Any) -> ShardLoader:
        """Return a DataLoader of these batches with so many workers; `options` are DataLoader's
        own."""
        return ShardLoader(self, workers, **options)


class ShardLoader:
    """Iterates over a dataset's batches, an epoch after the other, and knows where it is.

    `state_dict` counts the batches that were given, whatever workers have read ahead.
    """

    def __init__(self, dataset: ShardDataset, workers: int, **options: Any) -> None:
        self.dataset, self.workers = dataset, workers
        if options.get("persistent_workers"):
            raise ValueError("workers can't persist: each epoch starts them with its own order")
        self._loader = DataLoader(dataset, batch_size=None, num_workers=workers, **options)
        self.epoch = 0
        self._begin = self._batches = 0

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[Any]:
        self.dataset.set_epoch(self.epoch, self._begin)
        self._begin, self._batches = 0, self._begin
        for batch in self._loader:
            self._batches += 1
            yield batch
        self.epoch, self._batches = self.epoch + 1, 0

    def state_dict(self) -> Dict[str, Any]:
        """Return the epoch and how many of its batches were given. Ask when a step is done."""
        division = {**self.dataset.divided(), "workers": self.workers}
        return {"epoch": self.epoch, "batches": self._batches, "division": division}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Have the next iteration go on where the other loader was. Raises ValueError where that
        one read other samples, or had other ranks, workers or batches."""
        self.dataset.go_on_as(state["division"], workers=self.workers)
        self.epoch, self._begin = state["epoch"], state["batches"]
        self._batches = self._begin


def _refuse_other(division: Dict[str, Any], current: Dict[str, Any]) -> None:
    if division != current:
        was, now = (
            ", ".join(f"{name}={value!r}" for name, value in values.items())
            for values in (division, current)
        )
        raise ValueError(
            f"the state is of {was}, and here are {now}: "
            "an epoch can only be resumed with the same values"
        )


def shards(shards: Union[str, Iterable[str]], batch_size: int, **options: Any) -> ShardDataset:
    """Read the samples in tar shards for PyTorch, in batches: each sample once an epoch, on one
    rank.

    `shards` is a folder, a file, a pattern such as `train-{000..099}.tar`, or several of these:
    paths, which `--data` gives, or `gs://` and `s3://` where the ranks have fsspec for it. All
    ranks have equally many batches, of `batch_size` samples but for the last one or two.

    Options:
        shuffle: A seed, from which each epoch has its own order.
        transform: Turns a sample, a dict of `__key__` and bytes by extension, into an item.
        collate: Turns a list of items into a batch (default: torch's `default_collate`).
        drop_last: Leave samples out so that all batches are full.
        rank: The rank that reads (default: the run's).
        world_size: The number of ranks (default: the run's).

    Raises FileNotFoundError if there are no shards, ValueError if they can't be divided so.
    """
    return ShardDataset(shards, batch_size, **options)
