"""The threads of libraries that are loaded before ranks are forked.

Libraries read `OMP_NUM_THREADS` when they are loaded, which is before there was a rank.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Iterator

VARIABLE = "OMP_NUM_THREADS"
_WHILE_IMPORTING = {
    # pandas imports pyarrow where it is there, whose jemalloc starts a thread that only tidies up.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # What asks PyTorch for a GPU would initialize CUDA, and no fork could use it then.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}

_LIBRARY = re.compile(r"/lib[^/]*(?:gomp|omp5|iomp|blas|mkl_rt)[^/]*\.so[^/]*$")
_SETTERS = (
    "omp_set_num_threads",
    "MKL_Set_Num_Threads",
    *(f"{a}openblas_set_num_threads{z}" for a in ("", "scipy_") for z in ("", "64_")),
)


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


def limit(number: int) -> None:
    """Have what is loaded compute with that many threads, as if it had read so."""
    for path in _loaded():
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except OSError:  # replaced on disk since
            continue
        for name in _SETTERS:
            if hasattr(library, name):
                getattr(library, name)(number)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(number)


def _loaded() -> Iterator[str]:
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return
    yield from {
        path for path in (line[line.find("/") :] for line in lines) if _LIBRARY.search(path)
    }
