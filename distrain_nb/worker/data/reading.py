"""The samples of windows, read from their blocks ahead of who takes them."""

from __future__ import annotations

import tarfile
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Deque, Iterator, List, Sequence, Tuple

from distrain_nb.worker.data.index import SampleBlock
from distrain_nb.worker.data.order import Window
from distrain_nb.worker.data.samples import Sample, samples_in
from distrain_nb.worker.data.storage import read

AT_ONCE = 4


def samples_of(blocks: Sequence[SampleBlock], windows: Iterator[Window]) -> Iterator[Sample]:
    """Yield the samples of windows, in their order; a window is read while the one before is
    given."""
    pool = ThreadPoolExecutor(AT_ONCE)
    coming: Deque[Tuple[Window, List[Any]]] = deque()
    try:
        for window in windows:
            coming.append((window, _requested(pool, blocks, window)))
            if len(coming) > 1:
                yield from _samples_of(blocks, *coming.popleft())
        while coming:
            yield from _samples_of(blocks, *coming.popleft())
    finally:
        for _, pieces in coming:
            for piece in pieces:
                piece.cancel()
        pool.shutdown(wait=False)


def _requested(
    pool: ThreadPoolExecutor, blocks: Sequence[SampleBlock], window: Window
) -> List[Future[bytes]]:
    """Return the blocks of a window's pieces, on their way; none for a piece of which nothing is
    left."""
    numbers = {which for which, _ in window.picks}
    contents: List[Future[bytes]] = []
    for which, piece in enumerate(window.pieces):
        block = blocks[piece.block]
        if which in numbers:
            contents.append(pool.submit(read, block.path, block.offset, block.length))
        else:
            contents.append(Future())
    return contents


def _samples_of(
    blocks: Sequence[SampleBlock], window: Window, reads: List[Future[bytes]]
) -> Iterator[Sample]:
    samples: List[List[Sample]] = [[] for _ in window.pieces]
    for which in sorted({which for which, _ in window.picks}):
        samples[which] = block_samples(blocks[window.pieces[which].block], reads[which].result())
    for which, number in window.picks:
        yield samples[which][number]


def block_samples(block: SampleBlock, content: bytes) -> List[Sample]:
    """Return the samples of a block. Raises ValueError, with the shard's path, where it is
    damaged."""
    try:
        samples = list(samples_in(content))
    except (ValueError, tarfile.TarError, EOFError) as error:
        raise ValueError(
            f"{block.path} is damaged in its block at byte {block.offset}: {error}; fetch or pack "
            "it again"
        ) from None
    if len(samples) != block.samples:
        raise ValueError(
            f"{block.path} has {len(samples)} samples at byte {block.offset}, and its index says "
            f"{block.samples}: the shard has changed; pack the samples again"
        )
    return samples


def in_batches(samples: Iterator[Any], sizes: Sequence[int]) -> Iterator[List[Any]]:
    """Yield lists of so many samples each."""
    for size in sizes:
        yield list(islice(samples, size))
