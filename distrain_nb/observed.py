"""What the notebook asks about its rank and its world, seen while it asks.

The kernel is a world of one, and what was made of that answer must be made again in every rank.
So reads of launchers' variables, and calls of what knows the world, are noted with the statement
of the cell that led to them. Nothing is changed but who is called first; `stop` undoes it.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from dis import get_instructions
from functools import wraps
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any
from weakref import ref

from distrain_nb.worker.rank.on_import import on_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_LAUNCHER = re.compile(
    r"(\w*_)?(RANK|RANKS|WORLD_SIZE|LOCAL_SIZE|NNODES|NODEID|NTASKS|PROCID|LOCALID)(_\w+)?"
    r"|MASTER_(ADDR|PORT)|TF_CONFIG|CLUSTER_SPEC|NPROC\w*|NUM_PROCESSES|PROCESS_ID|NUM_NODES"
    r"|COORDINATOR_ADDRESS|CUDA_VISIBLE_DEVICES"
    r"|(TORCHELASTIC|OMPI|PMI|PMIX|SLURM|MV2|HOROVOD|SM|AIP|ACCELERATE|FSDP|DISTRAIN)_\w+"
)
# What answers for the world, by the module that defines it; of a class its methods.
_ASKED = {
    "torch.distributed.distributed_c10d": (
        *("is_initialized", "get_rank", "get_world_size", "get_node_local_rank", "get_backend"),
        *("get_group_rank", "get_process_group_ranks", "is_torchelastic_launched"),
    ),
    "jax._src.xla_bridge": (
        *("process_index", "process_count", "process_indices", "host_id", "host_count"),
        *("device_count", "devices"),
    ),
    "horovod.common.basics": tuple(
        f"HorovodBasics.{name}"
        for name in (
            *("is_initialized", "rank", "size", "local_rank", "local_size"),
            *("cross_rank", "cross_size"),
        )
    ),
    "ignite.distributed.utils": (
        *("get_rank", "get_world_size", "get_local_rank", "get_nnodes", "get_node_rank"),
        *("get_nproc_per_node",),
    ),
    "xgboost.collective": ("get_rank", "get_world_size", "is_distributed"),
    "torch_xla.runtime": ("global_ordinal", "local_ordinal", "world_size", "process_index"),
}
_KERNELS = ("IPython", "ipykernel")  # `%env RANK` is the user's own question
_PASSING = {"__getitem__", "__iter__", "__contains__", "get"}  # wrappers of other extensions
_ANSWERS = (bool, int, str, type(None))
_UNCHANGING = (bool, int, float, complex, str, bytes, type(None))
_NO_STATE = (*_UNCHANGING, ModuleType, FunctionType, BuiltinFunctionType, CodeType)
# How deep in a package a question matters: to give all of the environment to a process, or to ask
# whether there is a group, is part of other work.
_MOST_FRAMES, _MOST_DEPTH = 2, {"os.environ": 0}
_MOST_PARTS = 1000
_MOST_VARIABLES = 4096


def is_launchers(variable: str) -> bool:
    """Whether an environment variable is one that launchers set for each process."""
    return _LAUNCHER.fullmatch(variable) is not None


@dataclass(frozen=True)
class SeenRead:
    """What was asked, as one would write it, and the innermost line of the user's own code.

    `direct`: that line asked itself, rather than a package that it calls.
    """

    what: str
    where: str
    direct: bool


@dataclass
class Site:
    """A place at the top level of a cell, or of a module: what was asked from there, and the names
    of the notebook whose objects changed meanwhile."""

    line: int
    column: int
    reads: list[SeenRead] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)


@dataclass
class _Before:
    """How names and objects were when the world was asked from some places.

    Objects are held weakly where they can be, so that what a cell deletes is gone.
    """

    sites: list[Site]
    names: dict[str, tuple[int, type]]
    states: list[tuple[Callable[[], object], object]]
    stores: set[str]  # the attributes that the code sets, perhaps to what they were before


@dataclass
class Observer:
    """Notes reads of one notebook.

    `place` gives the label of a cell and a line of it as its author sees them, from the name of
    its file, the line there, and the line in what a magic runs for it, if any. `unseen` are the
    labels of cells, and the names of modules, that ran before.
    """

    namespace: Mapping[str, Any]
    place: Callable[[str, int, int], tuple[str, int] | None]
    unseen: frozenset[str] = frozenset()
    active: bool = True
    _running: str = ""  # the label of a cell
    _sites: dict[str, dict[tuple[int, int], Site]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _seen: dict[tuple[object, ...], tuple[object, ...]] = field(default_factory=dict)
    _before: list[_Before] = field(default_factory=list)
    _last: FrameType | None = None
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def sites(self, label: str) -> Iterable[Site]:
        """The places in a cell, or a module's file, from which the world was asked."""
        self.settle()
        return self._sites[label].values() if label in self._sites else ()

    def begin(self, label: str) -> None:
        """A cell of that name is about to run, and what others of the name asked is past."""
        self._running = label
        self._sites.pop(label, None)

    def end(self) -> None:
        """The cell has run."""
        self._running = ""
        self.settle()

    def filled(self) -> set[str]:
        """The names whose objects changed while some statement asked."""
        self.settle()
        sites = [site for places in self._sites.values() for site in places.values()]
        return {name for site in sites for name in site.filled}

    def settle(self) -> None:
        """Look which objects have changed since the world was asked."""
        waiting, self._before, self._last = self._before, [], None
        self._seen.clear()
        for before in waiting:
            things = [(thing(), state) for thing, state in before.states]
            changed = {
                id(thing)
                for thing, state in things
                if thing is not None and (_state(thing) != state or _takes(thing, before.stores))
            }
            names = {
                name
                for name, value in [*self.namespace.items()]
                if id(value) in changed or before.names.get(name) != (id(value), type(value))
            }
            for site in before.sites:
                site.filled |= names

    def see(self, what: str, frame: FrameType, package: str = "") -> None:
        """Note a read, unless *package* asks itself or no statement of the notebook led here."""
        if not self.active or (package and _root(frame.f_globals) == package):
            return
        try:
            top = self._top(frame) or self._top(_main_thread())
            if top is None and not self._running:
                return
            code, line = frame.f_code, frame.f_lineno
            key = (what, id(code), line, id(top), top and (id(top.f_code), top.f_lineno))
            if key not in self._seen:
                self._seen[key] = (code, top)  # kept, so that no other gets its id
                self._note(what, frame, top)
        except Exception:  # whatever is odd about a frame: the user's code goes on
            return

    # -- frames -------------------------------------------------------------------------------

    def _top(self, frame: FrameType | None) -> FrameType | None:
        """The outermost frame that runs a cell."""
        top, namespace = None, self.namespace
        while frame is not None:
            if frame.f_globals is namespace and frame.f_code.co_name[0] == "<":
                top = frame if _is_top_level(frame) else top
            frame = frame.f_back
        return top

    def _note(self, what: str, frame: FrameType, top: FrameType | None) -> None:
        own: list[FrameType] = []
        depth = 0  # of packages
        for each in _frames(frame, top):
            kind = _kind(each)
            if kind == "own" and each not in own:
                own.append(each)
            elif kind and not own and each.f_code.co_name not in _PASSING:
                depth += 1
            elif depth and not own and each.f_code.co_name == "_find_and_load":
                return  # what a package asks while it is imported is its own matter
        direct = depth == 0
        if not own or depth > _MOST_DEPTH.get(what, _MOST_FRAMES if "(" in what else depth):
            return
        read = SeenRead(what, self._where(own[0]), direct)
        sites = [*self._sites_of(own)]
        for site in sites:
            if read not in site.reads:
                site.reads.append(read)
        if direct:
            if self._last is not top:
                self.settle()
            self._last = top
            names = {n: (id(v), type(v)) for n, v in [*self.namespace.items()]}
            things = {id(thing): thing for each in own for thing in _reachable(each)}.values()
            states = [(_held(thing), _state(thing)) for thing in things if _may_change(thing)]
            stores = {name for each in own for name in _stores(each.f_code)}
            self._before.append(_Before(sites, names, states, stores))

    def _sites_of(self, own: list[FrameType]) -> Iterator[Site]:
        """Where modules and the cell are at their top level; line 0 where the cell only awaits."""
        top = [frame for frame in own if _is_top_level(frame)]
        for frame in top:
            if frame.f_globals is not self.namespace:
                yield self._site(frame.f_code.co_filename, frame.f_lineno, _column(frame))
        cell = [frame for frame in top if frame.f_globals is self.namespace]
        if not cell:
            yield self._site(self._running, 0, -1)
            return
        *_, below, outermost = (None, *cell)
        place = self._place(outermost, below)
        yield self._site(*place, -1 if below else _column(outermost))

    def _site(self, label: str, line: int, column: int) -> Site:
        return self._sites[label].setdefault((line, column), Site(line, column))

    def _place(self, frame: FrameType, below: FrameType | None = None) -> tuple[str, int]:
        name, line = frame.f_code.co_filename, frame.f_lineno
        return self.place(name, line, below.f_lineno if below else 0) or (name, line)

    def _where(self, frame: FrameType) -> str:
        label, line = self._place(frame)
        return f"{label}, line {line}"

    # -- being called first -------------------------------------------------------------------

    def start(self) -> None:
        """Be called first, from now on."""
        self.active = True
        self._watch_environment()
        self._undo.append(on_import(dict.fromkeys(_ASKED, self._watch_module)))

    def stop(self) -> None:
        """Put back what was there. What others have wrapped since stays, and notes nothing."""
        self.active = False
        while self._undo:
            self._undo.pop()()

    def _watch_environment(self) -> None:
        cls = type(os.environ)
        get, names, see, known = cls.__getitem__, cls.__iter__, self.see, dict[Any, str]()

        def getitem(self: Any, key: Any) -> Any:
            try:
                asked = known[key]
            except (KeyError, TypeError):
                asked = _asked_variable(key)
                if len(known) < _MOST_VARIABLES and isinstance(key, (str, bytes)):
                    known[key] = asked
            if asked:
                see(asked, sys._getframe(1))
            return get(self, key)

        def iterate(self: Any) -> Iterator[Any]:
            see("os.environ", sys._getframe(1))
            return names(self)

        self._replace(cls, "__getitem__", wraps(get)(getitem))
        self._replace(cls, "__iter__", wraps(names)(iterate))

    def _watch_module(self, module: Any) -> None:
        for path in _ASKED[module.__name__]:
            owner, _, name = path.rpartition(".")
            holder = getattr(module, owner, None) if owner else module
            function = vars(holder).get(name) if holder else None
            what = f"{_package_of(module.__name__)}.{name}()"
            if isinstance(function, FunctionType) and not function.__closure__:
                self._watch_function(function, what)
            elif function is not None and hasattr(function, "cache_info"):  # by `lru_cache`
                watched = wraps(function)(FunctionType(self._asking(function, what), {}))
                self._replace(holder, name, watched)

    def _watch_function(self, function: FunctionType, what: str) -> None:
        """Give a function another code: it stays the same object, whatever names it has."""
        before = function.__code__
        inner = FunctionType(before, function.__globals__, function.__name__, function.__defaults__)
        inner.__kwdefaults__ = function.__kwdefaults__
        function.__code__ = asking = self._asking(inner, what)
        function.__wrapped__ = inner  # type: ignore[attr-defined] # has signature and source

        def put_back() -> None:
            if function.__code__ is asking:
                function.__code__ = before
                del function.__wrapped__  # type: ignore[attr-defined]

        self._undo.append(put_back)

    def _asking(self, function: Callable[..., Any], what: str) -> CodeType:
        """Code that calls a function after the call was noted."""
        see, package = self.see, what.partition(".")[0]

        def noted(*args: Any, **kwargs: Any) -> Any:
            see(what, sys._getframe(2), package)
            return function(*args, **kwargs)

        code = _first.__code__
        return code.replace(co_consts=tuple(noted if c == _HERE else c for c in code.co_consts))

    def _replace(self, holder: Any, name: str, new: object) -> None:
        old = vars(holder)[name]
        setattr(holder, name, new)

        def put_back() -> None:
            if vars(holder).get(name) is new:
                setattr(holder, name, old)

        self._undo.append(put_back)


_current: list[Observer] = []


def observe(observer: Observer) -> None:
    """Have an observer note what is asked from now on, in place of the one that did."""
    stop()
    _current.append(observer)
    observer.start()


def stop() -> None:
    """Note nothing more."""
    while _current:
        _current.pop().stop()


def observer_of(namespace: Mapping[str, Any]) -> Observer | None:
    """The one that watches what these names' notebook asks."""
    return next((each for each in _current if each.namespace is namespace), None)


_HERE = "what is called"


def _first(*args: Any, **kwargs: Any) -> Any:
    """The code of watched functions, where a function stands in place of the text."""
    called: Any = "what is called"
    return called(*args, **kwargs)


# -- frames -------------------------------------------------------------------------------------


def _asked_variable(key: object) -> str:
    """How a launcher's variable is asked for; empty for any other."""
    name = key.decode(errors="replace") if isinstance(key, bytes) else key
    return f"os.environ[{name!r}]" if isinstance(name, str) and is_launchers(name) else ""


def _package_of(module: str) -> str:
    """Where users find what a module defines: `torch.distributed`, `jax`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[1] == "distributed" else parts[0]


def _is_top_level(frame: FrameType) -> bool:
    name = frame.f_code.co_name
    return name == "<module>" or name.startswith("<cell line")


def _main_thread() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _frames(frame: FrameType | None, top: FrameType | None) -> Iterator[FrameType]:
    """The frames up to one, which comes last also where it is another thread's."""
    while frame is not None and frame is not top:
        yield frame
        frame = frame.f_back
    if top is not None:
        yield top


def _kind(frame: FrameType) -> str:
    """Whose code runs: `own`, `package`, or nothing for Python's."""
    names = frame.f_globals
    root, file = _root(names), str(names.get("__file__") or "")
    if (root in sys.stdlib_module_names and root != "__main__") or root in _KERNELS:
        return ""
    installed = "site-packages" in file or "dist-packages" in file or root == "distrain_nb"
    return "package" if installed else "own"


def _root(names: Mapping[str, Any]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


def _column(frame: FrameType) -> int:
    """Where in its line a frame is; -1 where Python doesn't tell (before 3.11)."""
    positions = getattr(frame.f_code, "co_positions", None)
    found = [*positions()][frame.f_lasti // 2] if positions else ()
    return found[2] if found and found[0] == frame.f_lineno and found[2] is not None else -1


def _reachable(frame: FrameType) -> Iterator[object]:
    """What the code of a frame has names for, as far as it may change."""
    values = [] if _is_top_level(frame) else [*frame.f_locals.values()]
    values += [frame.f_globals[n] for n in frame.f_code.co_names if n in frame.f_globals]
    yield from (value for value in values if not isinstance(value, _NO_STATE))


def _stores(code: CodeType) -> Iterator[str]:
    """The attributes that code sets; `*` for any, and `[]` for items."""
    for instruction in get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            yield str(instruction.argval)
        elif instruction.opname == "STORE_SUBSCR":
            yield "[]"
    if "setattr" in code.co_names:
        yield "*"


def _takes(thing: object, stores: set[str]) -> bool:
    """Whether code that stores such attributes may have put a rank, a size or a name into it."""
    if not stores or hasattr(thing, "state_dict") or hasattr(thing, "get_weights"):
        return False
    inside = getattr(thing, "__dict__", {})
    plain = {n for n, v in inside.items() if isinstance(v, _ANSWERS) and n[:2] != "__"}
    items = isinstance(thing, dict) or any(isinstance(v, dict) for v in inside.values())
    return bool(plain & stores) or ("*" in stores and bool(plain)) or ("[]" in stores and items)


def _may_change(thing: object) -> bool:
    return isinstance(thing, (dict, list, set)) or hasattr(thing, "__dict__")


def _held(thing: object) -> Callable[[], object]:
    try:
        return ref(thing)
    except TypeError:
        return lambda: thing


def _state(thing: object, depth: int = 3) -> object:
    """What tells whether an object has got other parts; of a model those that are no weights."""
    if isinstance(thing, _UNCHANGING):
        return thing if thing == thing else "nan"
    if not depth or isinstance(thing, _NO_STATE):
        return id(thing)
    if isinstance(thing, dict):
        items = [*thing.items()][:_MOST_PARTS]
        return (len(thing), [(_state(k, 0), _state(v, depth - 1)) for k, v in items])
    if isinstance(thing, (list, tuple, set, frozenset)):
        return (len(thing), [_state(v, depth - 1) for v in [*thing][:_MOST_PARTS]])
    inside = dict(getattr(thing, "__dict__", None) or {})
    inside = {name: value for name, value in inside.items() if not str(name).startswith("__")}
    if hasattr(thing, "state_dict") or hasattr(thing, "get_weights"):
        plain = {n: v for n, v in inside.items() if isinstance(v, _UNCHANGING) and n != "training"}
        inside = {n: v for n, v in plain.items() if n[0] != "_"}
    return (id(thing), _state(inside, depth - 1)) if inside else id(thing)
