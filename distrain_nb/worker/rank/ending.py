"""The end of a rank's process, in Python's order: threads, `atexit`, then what the program made.

Python takes every module apart, PyTorch in half a second. Here that happens to the program's own
alone: what it left open is closed, so that archives are whole.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import gc
import io
import logging
import os
import sys
import threading
import weakref
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional

from distrain_nb.worker.machine import system
from distrain_nb.worker.machine.deadline import Deadline
from distrain_nb.worker.rank import values

# What hangs would keep a machine for nothing; but trackers upload in functions of `atexit`.
ATEXIT_WITHIN_S = 300.0
FINALIZED_WITHIN_S = 60.0
_SAYS_WHERE_S = 1.0

# The base of all files; `isinstance` would have lazy objects import what they stand for.
_FILE = io.IOBase.__base__
_LAYERS = (io.TextIOBase.__base__, io.BufferedIOBase, io.BufferedIOBase.__base__, _FILE)
_PROBE = "__distrain_probe__"

_last_import = ""  # before the program began


def begin() -> None:
    """Note that the program begins: later imports may be its own."""
    global _last_import
    _last_import = next(reversed(sys.modules), "")


def leave(status: int, program: Optional[Path] = None) -> None:
    """End the process as the interpreter would. Of modules, take apart those in the folder of the
    program.

    TensorFlow's and MPI's peers fail without a goodbye, which those two say when they are taken
    apart; but for a rank that has failed, MPI would wait for the others.
    """
    leave_out_compiling()
    if "tensorflow" in sys.modules or ("mpi4py.MPI" in sys.modules and not status):
        ctypes.pythonapi.Py_Exit(status)
    _call(getattr(threading, "_shutdown", None))
    deadline = Deadline(status)
    if not _has_children():
        _end_within(ATEXIT_WITHIN_S, deadline)
    _call(getattr(atexit, "_run_exitfuncs", None))
    _end_within(FINALIZED_WITHIN_S, deadline)
    _flush()
    _finalize(str(program) if program else "")
    _flush()
    system.flush_c_streams()
    os._exit(status)


def leave_out_compiling() -> None:
    """Unregister what PyTorch's compiler does at the end: a table of compile times for a log that
    hardly anybody reads, and the wait for processes that compile. They may still be starting, for
    8 s beside a GPU, and end with this one."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    table = getattr(dynamo, "dump_compile_times", None)
    if table is not None and not logging.getLogger("torch._dynamo.utils").isEnabledFor(
        logging.INFO
    ):
        atexit.unregister(table)
    compiling = sys.modules.get("torch._inductor.async_compile")
    wait = getattr(compiling, "shutdown_compile_workers", None)
    if wait is not None:
        atexit.unregister(wait)


def _call(function: Optional[Callable[[], Any]]) -> None:
    """Call a function as Python does at its end: print an error, and go on."""
    try:
        if function is not None:
            function()
    except BaseException:
        sys.excepthook(*sys.exc_info())


def _has_children() -> bool:
    """Return whether `multiprocessing` waits for processes, which may work as long as they need."""
    module = sys.modules.get("multiprocessing.process")
    children = module.active_children() if module is not None else ()
    return any(not child.daemon for child in children)


def _end_within(seconds: float, deadline: Deadline) -> None:
    """End the process then, whatever holds it, and say where it is."""
    faulthandler.dump_traceback_later(seconds, file=2)
    deadline.set(seconds + _SAYS_WHERE_S)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass


def _finalize(folder: str) -> None:
    """Let go of the program's modules, and then, while their names have values, of all that only
    they hold; clear the modules that are still held; close the files that others hold."""
    threading.excepthook = lambda _: None  # Python's end stops the threads that it finds
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    values.forget()
    gc.collect()  # as Python does: it puts what holds a thing before it, and so a file's wrapper
    probes = _let_go(folder)
    gc.collect()
    held = [names for probe in [*probes[1:], *probes[:1]] for names in _holders(probe)]
    for names in held:
        _clear(names)
    if held:
        gc.collect()
    _close_files()


def _let_go(folder: str) -> List[weakref.ReferenceType[Any]]:
    """Leave the program's modules to whoever else holds them, with a probe among their names:
    the names of a module may outlive it."""
    probes = []
    for name in ["__main__", *_imported()]:
        module = sys.modules[name]
        if type(module) is ModuleType and (name == "__main__" or _is_in(folder, module)):
            probe = _Probe()
            setattr(module, _PROBE, probe)
            probes.append(weakref.ref(probe))
            sys.modules[name] = None  # type: ignore[assignment]
    return probes


def _imported() -> List[str]:
    """Return the modules since the beginning, the last one first. To look at all would copy memory
    that this process shares with others."""
    return [*takewhile(lambda name: name != _last_import, reversed(sys.modules))]


class _Probe:
    """An object that exists as long as the names among which it is."""


def _is_in(folder: str, module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    return bool(folder) and isinstance(file, str) and file.startswith(folder + os.sep)


def _holders(probe: weakref.ReferenceType[Any]) -> Iterator[Dict[str, Any]]:
    held = probe()
    if held is not None:
        for holder in gc.get_referrers(held):
            if type(holder) is dict and holder.get(_PROBE) is held:
                yield holder


def _clear(names: Dict[str, Any]) -> None:
    """Clear a module as Python does: private names first."""
    private = [name for name in names if name.startswith("_") and not name.startswith("__")]
    for name in [*private, *names]:
        if name != "__builtins__":
            names[name] = None


def _close_files() -> None:
    """Close the files that libraries hold, such as a handler of `logging`; first what wraps
    another."""
    files = [thing for thing in gc.get_objects() if _FILE in type(thing).__mro__]
    for file in sorted(files, key=_layer):
        try:
            file.close()
        except BaseException:
            pass


def _layer(file: Any) -> int:
    """Return the layer of an object: text, archives and the like, buffers, files."""
    kinds = type(file).__mro__
    return next(number for number, kind in enumerate(_LAYERS) if kind in kinds)
