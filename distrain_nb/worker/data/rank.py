"""The rank of this process and the world size, as who reads samples finds them."""

from __future__ import annotations

import json
import os
import sys
from typing import Tuple


def rank_and_world() -> Tuple[int, int]:
    """Return the number of this rank and how many there are: of torch.distributed, if it has begun,
    of the launcher's variables, or of TensorFlow's cluster; else one alone."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return _of_tensorflow(os.environ.get("TF_CONFIG") or "{}")


def _of_tensorflow(text: str) -> Tuple[int, int]:
    """Return the rank and the world size by TF_CONFIG: the chief is 0, workers follow; servers and
    evaluators read alone."""
    config = json.loads(text)
    cluster, task = config.get("cluster", {}), config.get("task", {})
    trainers = [
        (kind, index)
        for kind in ("chief", "master", "worker")
        for index in range(len(cluster.get(kind, ())))
    ]
    trainer = (task.get("type"), int(task.get("index", 0)))
    return (trainers.index(trainer), len(trainers)) if trainer in trainers else (0, 1)
