"""Renews what a forked rank must not share with the warm process that it was forked from.

Libraries draw seeds, keys and the like once a process, when they are imported. Ranks that are
forked later would all have the same: so each draws again, before its program sets its own seeds.
What draws from the system at each use, or notices a fork by itself, is not here: `secrets`, `uuid`,
names of temporary files, TensorFlow, OpenSSL. Nor is what is the same in every new process:
PyTorch's generators of GPUs, C's `rand`. Python's hash seed can't be changed in a living process.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import weakref
from typing import Any, Callable, Dict


def renew() -> None:
    """Make this process, which has been forked a moment ago, as unlike others as a new one."""
    for name, seed in _SEEDS.items():
        module = sys.modules.get(name)
        if module is not None:
            seed(module)
    tempfile.tempdir = None  # the program may name another folder before it asks
    main = threading.main_thread()
    if hasattr(main, "_set_native_id"):  # which Python before 3.13 keeps
        main._set_native_id()
    _disown()


def _authenticate_anew(module: Any) -> None:
    module.current_process().authkey = os.urandom(32)


def _start_clock(module: Any) -> None:
    """Restart the clock of `relativeCreated` in records of the log; in ns since Python 3.13."""
    of_ns = isinstance(module._startTime, int)
    module._startTime = time.time_ns() if of_ns else time.time()


# By the module that has to be there for it.
_SEEDS: Dict[str, Callable[[Any], object]] = {
    "random": lambda module: module.seed(),
    "numpy.random": lambda module: module.seed(),
    "torch": lambda module: module.default_generator.seed(),
    "multiprocessing.process": _authenticate_anew,
    "logging": _start_clock,
}


def _disown() -> None:
    """Keep this process from running finalizers registered before the fork, of which PyTorch has
    hundreds."""
    for finalizer in [*getattr(weakref.finalize, "_registry", ())]:
        finalizer.atexit = False
