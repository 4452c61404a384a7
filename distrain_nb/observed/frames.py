"""What frames tell: whose code runs, where it is, and what it may have changed."""

from __future__ import annotations

import linecache
import os
import re
import stat
import sys
import threading
from dis import get_instructions
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.objects import is_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KERNELS = ("IPython", "ipykernel")  # `%env RANK` is the user's own question
_MOST_DESCRIPTORS = 2**16
_OF_THREADS = {"threading", "concurrent", "queue", "_queue", "multiprocessing", "asyncio"}
_LOADS = {"LOAD_NAME", "LOAD_GLOBAL"}
_FUNCTION = 0x1  # CO_OPTIMIZED, which bodies of classes and modules lack


_PASSING = {"__getitem__", "__iter__", "__contains__", "get"}  # wrappers of other extensions
_READERS = ("os", "collections.abc")


def is_top_level(frame: FrameType) -> bool:
    name = frame.f_code.co_name
    return name == "<module>" or name.startswith("<cell line")


def asking(frame: FrameType) -> FrameType:
    """Return the frame that reads a variable, behind Python's own `os.getenv` and `get`."""
    while frame.f_back is not None and frame.f_globals.get("__name__") in _READERS:
        frame = frame.f_back
    return frame


def threads_at_work(namespace: Mapping[str, Any]) -> set[int]:
    """Return the threads besides the main one that run functions of a notebook, by number, or are
    about to begin one."""
    frames = sys._current_frames()
    frames.pop(threading.main_thread().ident or 0, None)
    return {
        number
        for number, frame in frames.items()
        if _runs(frame, namespace) or _has_not_begun(frame)
    }


def _has_not_begun(frame: FrameType | None) -> bool:
    """Return whether a thread is still in what starts it; a pool's that waits is in the pool's."""
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        frame = frame.f_back
    return frame is None


def thread_number() -> int:
    """Return which thread runs now; 0 for the main one."""
    number = threading.get_ident()
    return 0 if number == threading.main_thread().ident else number


def is_of_threads(value: object) -> bool:
    """Return whether an object gives what a thread has made: a future, a queue, a thread."""
    return type(value).__module__.partition(".")[0] in _OF_THREADS


def _runs(frame: FrameType | None, namespace: Mapping[str, Any]) -> bool:
    while frame is not None and frame.f_globals is not namespace:
        frame = frame.f_back
    return frame is not None


def top_of(frame: FrameType | None, namespace: Mapping[str, Any]) -> FrameType | None:
    """Return the outermost frame that runs a cell."""
    top = None
    while frame is not None:
        if frame.f_globals is namespace and frame.f_code.co_name[0] == "<":
            top = frame if is_top_level(frame) else top
        frame = frame.f_back
    return top


def cell_of(frame: FrameType, namespace: Mapping[str, Any]) -> FrameType | None:
    """Return the outermost frame of the cell that led to a question; for another thread's that of
    the cell that runs meanwhile, unless the extension's own threads ask."""
    top = top_of(frame, namespace)
    if top is None:
        kinds = [f.f_globals for f in frames_to(frame, None) if kind_of(f)]
        rooms = str(kinds[-1].get("__name__")).split(".") if kinds else [""]
        if rooms[0] == "distrain_nb" and "data" not in rooms:  # which asks for the user
            return None
        top = top_of(sys._current_frames().get(threading.main_thread().ident or 0), namespace)
    return top


def of_package(frame: FrameType, top: FrameType, namespace: Mapping[str, Any]) -> set[str]:
    """Return the names in a statement for objects of the package that asks for a variable while it
    runs: `OmegaConf.resolve(cfg)` fills what it is given."""
    package = next((f for f in frames_to(frame, top) if kind_of(f) == "package"), frame)
    root = root_of(package.f_globals)
    values = {n: namespace[n] for n in top.f_code.co_names if n in namespace}
    return {
        name
        for name, value in values.items()
        if type(value).__module__.partition(".")[0] == root and not is_model(value)
    }


def frames_to(frame: FrameType | None, top: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames up to one, which comes last also where it is another thread's."""
    while frame is not None and frame is not top:
        yield frame
        frame = frame.f_back
    if top is not None:
        yield top


def own_frames(frame: FrameType, top: FrameType | None) -> tuple[list[FrameType], int]:
    """Return the frames of the notebook's own code that led to a question, innermost first, and how
    many of packages lie before them."""
    frames: list[FrameType] = []
    depth = 0
    for item in frames_to(frame, top):
        kind = kind_of(item)
        if kind == "own" and item not in frames:
            frames.append(item)
        elif kind and not frames and item.f_code.co_name not in _PASSING:
            depth += 1
        elif depth and not frames and item.f_code.co_name == "_find_and_load":
            return [], depth  # what a package asks while it is imported is its own matter
    return frames, depth


def kind_of(frame: FrameType) -> str:
    """Whose code runs: `own`, `package`, or nothing for Python's."""
    names = frame.f_globals
    root = root_of(names)
    if (root in sys.stdlib_module_names and root != "__main__") or root in _KERNELS:
        return ""
    return "package" if is_installed(names) else "own"


def is_installed(names: Mapping[str, Any]) -> bool:
    """Return whether a module of these names is a package's."""
    file = str(names.get("__file__") or "")
    installed = "site-packages" in file or "dist-packages" in file
    return installed or root_of(names) == "distrain_nb"


def root_of(names: Mapping[str, Any]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


@lru_cache(maxsize=4096)
def is_package(module: str) -> bool:
    """Return whether a module is installed, so that its private attributes are its own matter."""
    if module == "__main__":  # the notebook, wherever the file is that started this process
        return False
    names = vars(sys.modules.get(module, sys))
    return is_installed(names) or root_of(names) in sys.stdlib_module_names


def line_of(frame: FrameType) -> int:
    """Return the line where a frame is. One that has just begun is at none yet, as another thread
    may see it: then the first line of its code."""
    return frame.f_lineno or place_of(frame.f_code)[0]


def column_of(frame: FrameType) -> int:
    """Return where in its line a frame is; -1 where Python doesn't tell (before 3.11)."""
    if not frame.f_lineno:
        return place_of(frame.f_code)[1]
    positions = getattr(frame.f_code, "co_positions", None)
    span = [*positions()][frame.f_lasti // 2] if positions else ()
    return span[2] if span and span[0] == frame.f_lineno and span[2] is not None else -1


def place_of(code: CodeType) -> tuple[int, int]:
    """Return the first line and column of a statement's code; column -1 where Python doesn't
    tell."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return min((n for _, _, n in code.co_lines() if n), default=0), -1
    starts = [(line, column) for line, _, column, _ in positions() if line and column is not None]
    return min(starts, default=(0, -1))


def sets_text(frame: FrameType) -> bool:
    """Return whether a frame's line sets something to a text that it spells out."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return re.search(r"\]\s*=\s*(['\"])[^'\"]*\1\s*(#.*|;.*)?$", line) is not None


def values_of(frame: FrameType) -> Iterator[object]:
    """Yield what the code of a function has names for."""
    yield from frame.f_locals.values()
    yield from (frame.f_globals[n] for n in frame.f_code.co_names if n in frame.f_globals)


def run_by(code: CodeType, names: Mapping[str, Any]) -> Iterator[tuple[CodeType, set[str]]]:
    """Yield the code that runs with a statement, as far as names tell, each with the names that it
    reads and none before it does. Methods run if code looks up their names."""
    names_read, names_said = set[str](), set[str]()
    methods: dict[str, list[CodeType]] = {}
    waiting = [*_run_with(code)]
    while waiting:
        code = waiting.pop()
        if code.co_flags & _FUNCTION:
            waiting += [c for c in code.co_consts if isinstance(c, CodeType)]
        new = _loaded(code) - names_read
        names_read |= new
        names_said |= {*code.co_names}
        for value in map(names.get, new):
            if type(value) is FunctionType and value.__module__ == names.get("__name__"):
                waiting.append(value.__code__)
            for name, method in methods_of(value, names.get("__name__")):
                methods.setdefault(name, []).append(method)
        called = [name for name in methods if name[:2] == "__" or name in names_said]
        waiting += [method for name in called for method in methods.pop(name)]
        yield code, new


@lru_cache(maxsize=4096)
def _loaded(code: CodeType) -> set[str]:
    """Return the names that code reads; IPython puts those behind `$` and in braces into lines."""
    names = {i.argval for i in get_instructions(code) if i.opname in _LOADS}
    for text in code.co_consts if "get_ipython" in names else ():
        if isinstance(text, str):
            names.update(re.findall(r"\$(\w+)", text))
            names.update(
                n for part in re.findall(r"\{(.*?)\}", text) for n in re.findall(r"\w+", part)
            )
    return names


def methods_of(value: object, module: object) -> Iterator[tuple[str, CodeType]]:
    """Yield the methods of a class of a module, or of an object's class, by their names."""
    for base in (value if isinstance(value, type) else type(value)).__mro__:
        if base.__module__ == module:
            for name, item in vars(base).items():
                function = getattr(item, "__func__", getattr(item, "fget", item))
                if type(function) is FunctionType:
                    yield name, function.__code__


def _run_with(code: CodeType) -> Iterator[CodeType]:
    """Yield the code that runs with a statement: not the bodies of functions that it defines, nor
    those of lambdas where it calls nothing."""
    yield code
    calls = any("CALL" in instruction.opname for instruction in get_instructions(code))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_name not in code.co_names:  # a lambda, a comprehension
                if calls or inner.co_name != "<lambda>":
                    yield inner
            elif not inner.co_flags & _FUNCTION:  # the body of a class
                yield from _run_with(inner)


def named_containers(code: CodeType, names: Mapping[str, Any]) -> set[str]:
    """Return the names in a statement for what it may fill with what it gets."""
    return {n for n in code.co_names if isinstance(names.get(n), (list, dict, set))}


def shared_with_children(names: Mapping[str, Any]) -> set[str]:
    """Return the names for what a forked process may give its answers by: the ends of pipes, and
    the queues and the like of `multiprocessing`."""
    modules = {name: type(value).__module__ for name, value in [*names.items()]}
    queues = {n for n, module in modules.items() if module.startswith("multiprocessing.")}
    return queues | {n for n, v in [*names.items()] if type(v) is int and _is_pipe(v)}


def _is_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode if 2 < number < _MOST_DESCRIPTORS else 0
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@lru_cache(maxsize=4096)
def stored_by(code: CodeType, *, with_globals: bool = False) -> frozenset[str]:
    """Return the attributes that code sets; `*` for any, `[]` for items, `fill` for whole arrays,
    and `global x` for the module's x."""
    stored: set[str] = set()
    for instruction in get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            stored.add(str(instruction.argval))
        elif instruction.opname == "STORE_SUBSCR":
            stored.add("[]")
        elif instruction.opname == "STORE_GLOBAL" and with_globals:
            stored.add(f"global {instruction.argval}")
    if "setattr" in code.co_names:
        stored.add("*")
    if "fill" in code.co_names or any("out" in c for c in code.co_consts if type(c) is tuple):
        stored.add("fill")
    return frozenset(stored)
