"""Shards for TensorFlow, as a `tf.data.Dataset`."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterable, Iterator, List, Union

from distrain_nb.worker.data.index import SampleBlock
from distrain_nb.worker.data.reading import block_samples
from distrain_nb.worker.data.samples import Sample
from distrain_nb.worker.data.shards import ShardDataset
from distrain_nb.worker.data.storage import read


def tf_shards(
    shards: Union[str, Iterable[str]], batch_size: int, *, epoch: int = 0, **options: Any
) -> Any:
    """Return the batches of `shards` as a `tf.data.Dataset`: dictionaries of strings, by extension.

    Each iteration over it is the next epoch, the first is `epoch`. Every sample must have the
    extensions that the first one has. The dataset is divided among the ranks already: its
    auto-shard policy is off. Options are those of `shards`, without `transform` and `collate`.
    """
    import tensorflow as tf

    source = ShardDataset(shards, batch_size, collate=_columns, **options)
    epochs = itertools.count(epoch)

    def batches() -> Iterator[Any]:
        source.set_epoch(next(epochs))
        return iter(source)

    names = _first(source.blocks[0])
    signature = {name: tf.TensorSpec([None], tf.string) for name in names}
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    off = tf.data.Options()
    off.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(off)


def _first(block: SampleBlock) -> Sample:
    return block_samples(block, read(block.path, block.offset, block.length))[0]


def _columns(batch: List[Sample]) -> Dict[str, List[Any]]:
    return {name: [sample[name] for sample in batch] for name in batch[0]}
