"""Finds out whether a rank of a world of many has worked alone, which looks like a success.

Told from what was done in the process: which groups were made, what computed, which code read its
place. Variables of the environment may be the program's own. Nothing is imported or started for
that. Facts are those of PyTorch 1.13 to 2.13, Accelerate 1, Horovod 0.28, JAX 0.4 to 0.10,
TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from distrain_nb.worker import functions
from distrain_nb.worker.files.coded_line import ALONE, CodedLine, coded_lines
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import ALONE_FILE, PROGRAM_FOLDER
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.rank import program
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.reduction import process_groups

_MEANING = "Each did the whole work by itself, and the results are those of one rank."

_PLACE = {
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    *("SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    *("CLUSTER_SPEC", "TF_CONFIG"),
}
_ON_A_CPU = " (without a GPU, write `Accelerator(cpu=True)` or set ACCELERATE_USE_CPU=1)"
ENDED = 0
_SERVERS = ("_server_def", "_collective_ops_server_def")


class KnownWorld(NamedTuple):
    """The number of processes that a framework of the program knows: None where it was never
    started, `ENDED` where it has ended."""

    name: str
    size: Optional[int]
    rules: bool = False  # it trains whatever other frameworks know
    way_out: str = ""


class _Observed(NamedTuple):
    """Observed acts of the program: the groups that it made, by size; whether it read its place;
    the names of TensorFlow's strategies that it made."""

    groups: List[int]
    by_accelerate: List[int]
    reads: Set[str]
    strategies: List[str]


_observed = _Observed([], [], set(), [])


def watch(folder: Path) -> None:
    """See from now on what the program in that folder does."""
    _watch_reads(str(folder.absolute()) + os.sep)
    on_import(
        {
            "torch.distributed.distributed_c10d": _watch_groups,
            "tensorflow.python.distribute.distribute_lib": _watch_strategies,
        }
    )


def _watch_reads(folder: str) -> None:
    kind: Any = type(os.environ)
    read = kind.__getitem__

    def read_and_note(self: Any, key: Any) -> Any:
        if key in _PLACE and _is_read_by(folder, sys._getframe(1)):
            _observed.reads.add(key)
        return read(self, key)

    kind.__getitem__ = read_and_note


def _is_read_by(folder: str, frame: Any) -> bool:
    """Return whether code of the program reads a variable, perhaps by `os.environ.get` or
    `os.getenv`."""
    frame = _outside(("os", "collections"), frame)  # the base of `os.environ` calls itself so
    file = frame.f_code.co_filename if frame is not None else ""
    return file in functions.labels or file.startswith(folder)


def _outside(packages: Tuple[str, ...], frame: Any) -> Any:
    """Return the first frame that runs code of none of these packages; None where all do."""
    while frame is not None and _package(frame) in packages:
        frame = frame.f_back
    return frame


def _package(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _watch_groups(module: Any) -> None:
    init = module.init_process_group

    @functools.wraps(init)
    def init_process_group(*arguments: Any, **named: Any) -> None:
        init(*arguments, **named)
        caller = _outside(("torch", "distrain_nb"), sys._getframe(1))
        of_accelerate = caller is not None and _package(caller) == "accelerate"
        sizes = _observed.by_accelerate if of_accelerate else _observed.groups
        sizes.append(int(module.get_world_size()))

    module.init_process_group = init_process_group
    package = sys.modules.get("torch.distributed")
    if hasattr(package, "init_process_group"):  # it was imported before
        package.init_process_group = init_process_group  # type: ignore[union-attr]


def _watch_strategies(module: Any) -> None:
    base = module.StrategyBase
    init = base.__init__

    @functools.wraps(init)
    def init_and_note(self: Any, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        name = type(self).__name__
        if "Default" not in name:  # which TensorFlow makes itself, where there is no other
            _observed.strategies.append(name)

    base.__init__ = init_and_note


def check(folder: Path, process: int) -> None:
    """Warn in the log, and leave word, where that process of a run has worked alone."""
    launch = Launch.read(folder)
    spec = launch.processes[process]
    environment = {**variables(), **spec.environment}  # which the program may have changed since
    world = int(environment.get("WORLD_SIZE", "1"))
    pool_of_servers = (
        "workerpool2" in environment.get("CLUSTER_SPEC", "") and not process_groups.addresses()
    )
    serves = pool_of_servers or any(p.role == "servers" for p in launch.processes)
    if spec.rank is None or world < 2 or serves or not launch.distributes:
        return
    try:
        why = _alone(list(_known_worlds(folder / PROGRAM_FOLDER)))
        if why:
            text = f"warning: rank {spec.rank} of {world} worked alone: {why}"
            print(CodedLine(ALONE, text), file=sys.stderr, flush=True)
            replace_file(folder / ALONE_FILE.format(process), why.encode())
    except Exception as error:  # a framework of another version, a full disk
        print(f"distrain: can't determine the size of the world: {error!r}", file=sys.stderr)


def note(folder: Path, processes: int) -> str:
    """Return the warning about a run whose ranks worked alone; empty where none did."""
    files = [folder / ALONE_FILE.format(number) for number in range(processes)]
    notes = [file for file in files if file.exists()]
    if not notes:
        return ""
    why = notes[0].read_text(encoding="utf-8")
    return f"warning: the ranks worked alone: {why}. {_MEANING}"


def note_in(lines: Iterable[str]) -> str:
    """Return the warning that `note` gives, from what ranks have written into their log."""
    warned = (line.text for line in coded_lines(lines) if line.code == ALONE)
    return next((f"{text}. {_MEANING}" for text in warned), "")


def _alone(worlds: List[KnownWorld]) -> str:
    alone = [k for k in worlds if k.size == 1]
    if any(k.size not in (None, 1) for k in worlds):
        alone = [k for k in alone if k.rules]
    if alone:
        return f"{_names(alone)} knows of 1 process{''.join(k.way_out for k in alone)}"
    never = [k for k in worlds if k.size is None]
    if len(never) < len(worlds) or not never or _observed.reads:
        return ""
    return f"{_names(never)} was never initialized"


def _names(worlds: List[KnownWorld]) -> str:
    return " and ".join(k.name for k in worlds)


# -- what frameworks know, of those that the program has used -------------------------------------


def _known_worlds(folder: Path) -> Iterator[KnownWorld]:
    imports = _Imports(folder)
    yield from _horovod()
    yield from _mpi(imports)
    yield from _torch(imports)
    yield from _accelerate()
    yield from _tensorflow()
    yield from _jax()


class _Imports:
    """Imports of the program itself: an imported package may have imported more."""

    def __init__(self, folder: Path) -> None:
        files = [*folder.rglob("*.py"), program.main_file(folder)]
        text = "\n".join(file.read_text("utf-8", "replace") for file in files)
        lines = re.findall(r"^[ \t]*(?:from|import)[ \t]+(.*)", text, re.M)
        self._roots = {word.partition(".")[0] for line in lines for word in _words(line)}

    def have(self, package: str) -> bool:
        """Return whether the program imports it, or a package whose own modules do."""
        return package in sys.modules and any(
            root == package or self._brings(root, package) for root in self._roots
        )

    @staticmethod
    def _brings(root: str, package: str) -> bool:
        imported = sys.modules[package]
        return any(
            vars(module).get(package) is imported
            for name, module in sys.modules.copy().items()
            if name.partition(".")[0] == root and type(module) is type(sys)
        )


def _words(line: str) -> List[str]:
    """Return the names that an import line imports, of `a.b import c` and `a, b.c as d`."""
    return [part.split()[0] for part in line.partition(" import ")[0].split(",") if part.split()]


def _horovod() -> Iterator[KnownWorld]:
    sets = sys.modules.get("horovod.common.process_sets")
    ranks = getattr(getattr(sets, "global_process_set", None), "ranks", None)
    if ranks:  # which outlast shutdown()
        yield KnownWorld("Horovod", len(ranks))


def _mpi(imports: _Imports) -> Iterator[KnownWorld]:
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized():
        size = ENDED if mpi.Is_finalized() else int(mpi.COMM_WORLD.Get_size())
        if size != 1 or imports.have("mpi4py"):  # to import it is to start a world of one
            yield KnownWorld("MPI.COMM_WORLD", size)


def _torch(imports: _Imports) -> Iterator[KnownWorld]:
    name, sizes = "torch.distributed", _observed.groups + _observed.by_accelerate
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if sizes:
        yield KnownWorld(name, max(sizes))
    elif c10d is not None and c10d.is_initialized():  # by what had been imported before
        yield KnownWorld(name, int(c10d.get_world_size()))
    elif getattr(c10d, "_default_pg_init_method", None) is not None:
        yield KnownWorld(name, ENDED)
    elif imports.have("torch"):
        yield KnownWorld(name, None)


def _accelerate() -> Iterator[KnownWorld]:
    """Note Accelerate's world, also where it has started PyTorch's group itself."""
    module: Any = sys.modules.get("accelerate.state")
    state = getattr(getattr(module, "PartialState", None), "_shared_state", {})
    prepares = getattr(getattr(module, "AcceleratorState", None), "_shared_state", {})
    if "num_processes" in state:
        without_gpu = getattr(state.get("device"), "type", "") == "cpu"
        way_out = _ON_A_CPU if without_gpu and _observed.by_accelerate else ""
        rules = bool(prepares or _observed.by_accelerate)
        yield KnownWorld("Accelerate", int(state["num_processes"]), rules, way_out)


def _tensorflow() -> Iterator[KnownWorld]:
    module = sys.modules.get("tensorflow.python.eager.context")
    context = module._context if module is not None else None
    servers = [getattr(context, name, None) for name in _SERVERS]
    if any(server is not None for server in servers):
        yield KnownWorld("TensorFlow", ENDED)
    elif _observed.strategies:  # of this process alone
        yield KnownWorld(f"TensorFlow's {_observed.strategies[-1]}", 1)
    elif getattr(context, "_context_handle", None) is not None:  # something was computed
        yield KnownWorld("a strategy of TensorFlow", None)


def _jax() -> Iterator[KnownWorld]:
    state: Mapping[str, Any] = getattr(
        getattr(sys.modules.get("jax._src.distributed"), "global_state", None), "__dict__", {}
    )
    if "num_processes" in state:  # which outlasts shutdown()
        yield KnownWorld("jax.distributed", int(state["num_processes"]))
    elif getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
        yield KnownWorld("jax.distributed", None)
