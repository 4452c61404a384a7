"""A rank and its world: whether there is one, and of which tensors the rank has only a part."""

from __future__ import annotations

import sys
from typing import Any

_SHARDS = ("DTensor", "FlatParameter", "ShardedTensor")


def is_shard(tensor: Any) -> bool:
    """Return whether a tensor is one rank's part of something."""
    names = {base.__name__ for base in type(tensor).__mro__}
    return bool(names.intersection(_SHARDS)) or hasattr(tensor, "_is_flat_param")


def has_world() -> bool:
    """Return whether the program has made a group of ranks, by PyTorch or Horovod."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is not None and c10d.is_initialized():
        return int(c10d.get_world_size()) > 1
    sets: Any = sys.modules.get("horovod.common.process_sets")
    ranks: Any = getattr(getattr(sets, "global_process_set", None), "ranks", None)
    return len(ranks or ()) > 1
