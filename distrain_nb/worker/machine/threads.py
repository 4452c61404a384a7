"""How many threads the libraries of a rank compute with.

They read `OMP_NUM_THREADS` when they are loaded, which is before there was a rank.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import Iterator

VARIABLE = "OMP_NUM_THREADS"
_LIBRARY = re.compile(r"/lib[^/]*(?:gomp|omp5|iomp|blas|mkl_rt)[^/]*\.so[^/]*$")
_SETTERS = (
    "omp_set_num_threads",
    "MKL_Set_Num_Threads",
    *(f"{a}openblas_set_num_threads{z}" for a in ("", "scipy_") for z in ("", "64_")),
)


def limit(number: int) -> None:
    """Have what is loaded compute with that many threads, as if it had read so."""
    for path in _loaded():
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except OSError:  # replaced on disk since
            continue
        if _lower_before_start(library, number):
            continue
        for name in _SETTERS:
            if hasattr(library, name):
                getattr(library, name)(number)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(number)


def _lower_before_start(library: ctypes.CDLL, number: int) -> bool:
    """Lower the number of threads that OpenBLAS is to start at its first use; say whether it could.

    A fork has none of its threads. The setter would start them all at once, and each would keep a
    core busy for 0.1 s, in wait of work. In another version or build the setter is called.
    """
    try:
        has_threads, *numbers = (
            ctypes.c_int.in_dll(library, f"blas_{name}")
            for name in ("server_avail", "cpu_number", "num_threads")
        )
    except ValueError:
        return False
    if has_threads.value or any(there.value < number for there in numbers):
        return False
    for there in numbers:
        there.value = number
    return True


def _loaded() -> Iterator[str]:
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return
    yield from {
        path for path in (line[line.find("/") :] for line in lines) if _LIBRARY.search(path)
    }
