"""The import of a framework into a process that forks ranks afterwards."""

from __future__ import annotations

import importlib
import os

_WHILE_IMPORTING = {
    # pandas imports pyarrow where it is there, whose jemalloc starts a thread that only tidies up.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # What asks PyTorch for a GPU would initialize CUDA, and no fork could use it then.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


def import_without(name: str) -> None:
    """Import a framework without a thread that a fork would leave behind, and without CUDA. Raises
    what it raises."""
    unset = {key: text for key, text in _WHILE_IMPORTING.items() if key not in os.environ}
    os.environ.update(unset)
    try:
        importlib.import_module(name)
    finally:
        for key in unset:
            os.environ.pop(key, None)
