"""Data for training: shards are packed here, and read where ranks run.

This module travels with the worker, as the readers do: the standard library only, Python 3.8.
"""

from typing import Any

_HOMES = {
    "pack": "distrain_nb.data.packing",
    "shards": "distrain_nb.worker.data.shards",
    "tf_shards": "distrain_nb.worker.data.tf",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
