"""Data for training: shards are packed here, and read where ranks run.

This module travels with the worker, as the readers do: the standard library only, Python 3.8.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distrain_nb.data.packing import pack
    from distrain_nb.worker.data.shards import shards
    from distrain_nb.worker.data.tf import tf_shards

_HOMES = {
    "pack": "distrain_nb.data.packing",
    "shards": "distrain_nb.worker.data.shards",
    "tf_shards": "distrain_nb.worker.data.tf",
}

__all__ = ["pack", "shards", "tf_shards"]

if not TYPE_CHECKING:  # or checkers would take any name for one that is here

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
