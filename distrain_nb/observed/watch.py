"""Wrappers around what asks for the world, which note the call before it is made.

What counts as asking about the world: launchers' variables, and functions of packages.

What was asked about the world, and from where.

What processes ask that the notebook starts: those that it forks tell it; of commands, their text
does.
"""

from __future__ import annotations

import os
import re
import sys
from functools import wraps
from mmap import mmap
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.worker.rank.on_import import on_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from distrain_nb.observed.process import Variables

_SIZE, _END = 4096, "\0"  # of a question that a child tells
_MOST_WORDS = 64  # of a command that may name a script
_MOST_OF_SCRIPT = 2**18  # bytes: what a command runs is read for the variables that it names
_LAUNCHER = (  # `re` compiles it when a variable is asked for
    r"(\w*_)?(RANK|RANKS|WORLD_SIZE|LOCAL_SIZE|NNODES|NODEID|NTASKS|PROCID|LOCALID)(_\w+)?"
    r"|MASTER_(ADDR|PORT)|TF_CONFIG|CLUSTER_SPEC|NPROC\w*|NUM_PROCESSES|PROCESS_ID|NUM_NODES"
    r"|COORDINATOR_ADDRESS|CUDA_VISIBLE_DEVICES"
    r"|(TORCHELASTIC|OMPI|PMI|PMIX|SLURM|MV2|HOROVOD|SM|AIP|ACCELERATE|FSDP)_\w+"
    r"|DISTRAIN_(?!HOME$)\w+"
)
# What answers for the world, by the module that defines it; of a class its methods.
ASKED = {
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


def is_launchers(variable: str) -> bool:
    """Return whether an environment variable is one that launchers set for each process."""
    return re.fullmatch(_LAUNCHER, variable) is not None


def is_inherited(variable: object) -> bool:
    """Return whether a rank has a variable of the environment from the notebook."""
    return variable == "CUDA_VISIBLE_DEVICES" or not is_launchers(str(variable))


def asked_variable(key: object) -> str:
    """Return how a launcher's variable is asked for; empty for any other."""
    name = key.decode(errors="replace") if isinstance(key, bytes) else key
    return f"os.environ[{name!r}]" if isinstance(name, str) and is_launchers(name) else ""


def package_of(module: str) -> str:
    """Return where users find what a module defines: `torch.distributed`, `jax`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[1] == "distributed" else parts[0]


# No dataclasses in this room: each takes `%load_ext` half a millisecond or more.


class SeenRead(NamedTuple):
    """What was asked, as one would write it, and the innermost line of the user's own code.

    `direct`: that line asked itself, rather than a package that it calls.
    """

    what: str
    where: str
    direct: bool


class Site:
    """A place at the top level of a cell, or of a module: what was asked from there, and the names
    of the notebook whose objects changed meanwhile. `read` are the names that were read there, with
    what tells if they still stand for that; `sets` are variables of the environment set from there.

    `in_thread` says that a thread asked, and `beside` that another statement had started it, or
    that it went on when the statement was over. `starts` says that a command was run from there.
    `before` has the parts of what was named there, as they were when the statement began.
    """

    def __init__(self, line: int, column: int) -> None:
        self.line, self.column = line, column
        self.reads: list[SeenRead] = []
        self.filled: set[str] = set()
        self.read: dict[str, Callable[[object], bool]] = {}
        self.sets: set[str] = set()
        self.before: dict[str, dict[str, str]] = {}
        self.in_thread = self.beside = self.starts = False

    def add(self, read: SeenRead, *, idle: bool) -> None:
        """Note what was asked; `idle` says that a thread asks between the cells."""
        if read not in self.reads:
            self.reads.append(read)
        self.in_thread |= idle
        self.beside |= idle


_MOST_VARIABLES = 4096


class Watch:
    """Calls `see` with what is asked, the frame that asks, and the package that answers, before
    it is answered; `sets` with a variable of the environment and the frame that sets it; `starts`
    with the command of a process and the frame that starts it; `variables` note the others."""

    def __init__(
        self,
        see: Callable[..., None],
        sets: Callable[..., None],
        starts: Callable[..., None],
        variables: Variables,
    ) -> None:
        self._see, self._sets, self._starts, self._variables = see, sets, starts, variables
        self.children = Children()
        self.spawned = False  # a pool's processes, which tell nothing
        self._asked: dict[Any, str] = {}  # by the variable: how it is asked for, empty for others
        self._undo: list[Callable[[], None]] = []

    def learn(self, variables: Iterable[str]) -> None:
        """Take variables that the notebook has set by its rank for such as launchers set."""
        self._asked.update((name, f"os.environ[{name!r}]") for name in variables)

    def start(self) -> None:
        """Be called first, from now on."""
        self._watch_environment()
        modules = {"subprocess": self._watch_commands, **dict.fromkeys(ASKED, self._watch_module)}
        self._undo.append(on_import(modules))

    def stop(self) -> None:
        """Put back what was there. What others have wrapped since stays, and notes nothing."""
        while self._undo:
            self._undo.pop()()

    def _watch_environment(self) -> None:
        cls = type(os.environ)
        get, set_, names, shown = cls.__getitem__, cls.__setitem__, cls.__iter__, cls.__repr__
        see, sets, known = self._see, self._sets, self._asked
        note, read = self._variables.note, self._variables.noted

        def getitem(self: Any, key: Any) -> Any:
            __tracebackhide__ = True  # for IPython
            try:
                asked = known[key]
            except (KeyError, TypeError):
                asked = asked_variable(key)
                if len(known) < _MOST_VARIABLES and isinstance(key, (str, bytes)):
                    known[key] = asked
            if asked:
                see(asked, sys._getframe(1))
            elif type(key) is str and key not in read:
                note(key, sys._getframe(1))
            return get(self, key)

        def setitem(self: Any, key: Any, value: Any) -> None:
            __tracebackhide__ = True
            set_(self, key, value)
            sets(key, sys._getframe(1))

        def iterate(self: Any) -> Iterator[Any]:
            see("os.environ", sys._getframe(1))
            return names(self)

        def show(self: Any) -> str:
            see("os.environ", sys._getframe(1))
            return shown(self)

        self._replace(cls, "__getitem__", wraps(get)(getitem))
        self._replace(cls, "__setitem__", wraps(set_)(setitem))
        self._replace(cls, "__iter__", wraps(names)(iterate))
        self._replace(cls, "__repr__", wraps(shown)(show))

    def _watch_commands(self, module: Any) -> None:
        def note(frame: FrameType, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
            self._starts(named.get("args", "") if len(args) < 2 else args[1], frame)

        def note_command(frame: FrameType, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
            self._starts(args[0] if args else named.get("command", ""), frame)

        system = FunctionType(_asking(os.system, note_command), {})
        self._replace(os, "system", wraps(os.system)(system))
        self._watch_function(module.Popen.__init__, note)
        self._watch_pools()

    def _watch_pools(self) -> None:
        """Note that a pool starts interpreters: multiprocessing and joblib look this function up
        when they do; subprocess has taken it at its import."""
        import _posixsubprocess

        start = _posixsubprocess.fork_exec

        def fork_exec(*args: Any) -> int:
            self.spawned = True
            return start(*args)

        self._replace(_posixsubprocess, "fork_exec", wraps(start)(fork_exec))

    def _watch_module(self, module: Any) -> None:
        for path in ASKED[module.__name__]:
            owner, _, name = path.rpartition(".")
            holder = getattr(module, owner, None) if owner else module
            function = vars(holder).get(name) if holder else None
            what = f"{package_of(module.__name__)}.{name}()"
            if type(function) is FunctionType and not function.__closure__:
                self._watch_function(function, self._noting(what))
            elif function is not None and hasattr(function, "cache_info"):  # by `lru_cache`
                watched = wraps(function)(FunctionType(_asking(function, self._noting(what)), {}))
                self._replace(holder, name, watched)

    def _noting(self, what: str) -> Callable[..., None]:
        see, package = self._see, what.partition(".")[0]
        return lambda frame, *_: see(what, frame, package)

    def _watch_function(self, function: FunctionType, note: Callable[..., None]) -> None:
        """Give a function another code: it stays the same object, whatever names it has."""
        before = function.__code__
        inner = FunctionType(before, function.__globals__, function.__name__, function.__defaults__)
        inner.__kwdefaults__ = function.__kwdefaults__
        function.__code__ = asking = _asking(inner, note)
        function.__wrapped__ = inner  # type: ignore[attr-defined] # has signature and source

        def put_back() -> None:
            if function.__code__ is asking:
                function.__code__ = before
                del function.__wrapped__  # type: ignore[attr-defined]

        self._undo.append(put_back)

    def _replace(self, holder: Any, name: str, new: object) -> None:
        old = vars(holder)[name]
        setattr(holder, name, new)

        def put_back() -> None:
            if vars(holder).get(name) is new:
                setattr(holder, name, old)

        self._undo.append(put_back)


def _asking(function: Callable[..., Any], note: Callable[..., None]) -> CodeType:
    """Return code that calls a function after the call was noted, with the frame that calls."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        note(sys._getframe(2), args, kwargs)
        return function(*args, **kwargs)

    code = _first.__code__
    return code.replace(co_consts=tuple(noted if c == _HERE else c for c in code.co_consts))


_HERE = "what is called"


def _first(*args: Any, **kwargs: Any) -> Any:
    """Return the code of watched functions, where a function stands in place of the text."""
    called: Any = "what is called"
    return called(*args, **kwargs)


class Children:
    """Memory that this process shares with those that it forks, for what one of them asked."""

    def __init__(self) -> None:
        self._shared, self._parent = mmap(-1, _SIZE), os.getpid()

    def tell(self, read: SeenRead) -> bool:
        """Tell the parent what was asked; false where this is the parent."""
        if os.getpid() == self._parent:
            return False
        text = f"{read.what}{_END}{read.where}".encode()[: _SIZE - 1]
        self._shared[: len(text) + 1] = text + _END.encode()
        return True

    @property
    def has_told(self) -> bool:
        """Whether a child has asked since `question` was called."""
        return bool(self._shared[0])

    def question(self) -> SeenRead | None:
        """Return what a child has asked since the last call."""
        if not self._shared[0]:
            return None
        what, where, *_ = self._shared[:].decode(errors="replace").split(_END)
        self._shared[0] = 0
        return SeenRead(what, where, direct=True)


def asked_by_command(command: Any) -> str:
    """Return how a command asks for a launcher's variable that it, or a script that it runs, names;
    empty for any other."""
    parts: Iterable[Any] = command if isinstance(command, (list, tuple)) else (command,)
    texts = [*map(_word_text, parts)]
    texts += [_script(word) for text in texts[:_MOST_WORDS] for word in text.split()[:_MOST_WORDS]]
    words = (word for text in texts for word in re.findall(r"\w+", text))
    return next(filter(None, map(asked_variable, words)), "")


def _script(word: str) -> str:
    """Return the text of a script that a word of a command names; empty for any other word."""
    try:
        path = Path(word) if word.endswith((".py", ".sh")) else None
        if path is None or not path.is_file():  # to open a pipe would wait for who writes it
            return ""
        with path.open("rb") as file:
            return file.read(_MOST_OF_SCRIPT).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _word_text(part: Any) -> str:
    part = os.fspath(part) if hasattr(part, "__fspath__") else part
    return part.decode(errors="replace") if isinstance(part, bytes) else str(part)
