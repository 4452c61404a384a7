"""Whether a rank of a world of many has worked alone, which ends as well as if it had not.

Only what is in `sys.modules` is asked, and nothing is started by asking. Facts are those of
PyTorch 1.13 to 2.13, Accelerate 1, Horovod 0.28, JAX 0.4, TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, FrozenSet, Iterable, Iterator, List, Optional, Tuple

from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import ALONE_FILE, PROGRAM_FOLDER
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.rank.program import main_file
from distrain_nb.worker.reduction import groups

# What a rank's log says of it, where a cloud's carrier looks for it.
_SAID = "distrain: warning: rank %d of %d worked alone: %s"
_SAYS = re.compile(r"distrain: warning: rank \d+ of \d+ worked alone: (?P<why>.*)")
_NOTE = (
    "warning: the ranks worked alone: %s. Each did the whole work by itself, and the results are"
    " those of one rank."
)

# Packages that distribute by torch.distributed; importing one is to want that.
_ON_TORCH = ("torch", "lightning", "pytorch_lightning", "accelerate", "transformers")
_PLACE = re.compile(r"\b(LOCAL_|SLURM_)?(RANK|WORLD_SIZE|PROCID|CLUSTER_SPEC)\b")

# A framework's name, and how many processes it knows of: None where it was never started.
Size = Tuple[str, Optional[int]]
ENDED = 0  # it was started, but nothing is left to say with how many


def loaded() -> FrozenSet[str]:
    """The packages that are imported, perhaps for another run, before the program starts."""
    return frozenset(name.partition(".")[0] for name in sys.modules)


def check(folder: Path, process: int, before: FrozenSet[str]) -> None:
    """Warn in the log, and leave word, where that process of a run has worked alone."""
    launch = Launch.read(folder)
    rank, world = launch.processes[process].rank, int(os.environ.get("WORLD_SIZE", "1"))
    pool_of_servers = "workerpool2" in _cluster() and not groups.addresses()
    serves = pool_of_servers or any(p.role == "servers" for p in launch.processes)
    if rank is None or world < 2 or serves or not launch.distributes:
        return
    try:
        why = _alone(_Program(folder / PROGRAM_FOLDER, before))
        if why:
            print(_SAID % (rank, world, why), file=sys.stderr, flush=True)
            replace_file(folder / ALONE_FILE.format(process), why.encode())
    except Exception as error:  # a framework of another version, a full disk
        print(f"distrain: can't tell the size of the world: {error!r}", file=sys.stderr)


def note(folder: Path, processes: int) -> str:
    """What to tell of a run whose ranks have worked alone; empty where none has."""
    files = [folder / ALONE_FILE.format(number) for number in range(processes)]
    found = [file for file in files if file.exists()]
    if not found:
        return ""
    return _NOTE % found[0].read_text(encoding="utf-8")


def note_in(lines: Iterable[str]) -> str:
    """The same from what ranks have written into their log."""
    found = (_SAYS.match(line) for line in lines)
    return next((_NOTE % said["why"] for said in found if said), "")


def _cluster() -> str:
    return os.environ.get("CLUSTER_SPEC", "")


class _Program:
    """What the program has imported, which is not all that is imported in a warm process."""

    def __init__(self, folder: Path, before: FrozenSet[str]) -> None:
        self._before = before
        self._main = main_file(folder).read_text(encoding="utf-8")
        files = sorted(folder.rglob("*.py"))
        self._text = "\n".join(f.read_text(encoding="utf-8", errors="replace") for f in files)

    def uses(self, *packages: str) -> bool:
        return any(p in sys.modules and (p not in self._before or self._names(p)) for p in packages)

    def _names(self, package: str) -> bool:
        line = rf"^[ \t]*(from|import)[ \t][^#\n]*\b{re.escape(package)}\b"
        return re.search(line, self._text, re.M) is not None

    @property
    def knows_its_place(self) -> bool:
        """It reads its rank itself, and may share out work that needs no framework."""
        return _PLACE.search(self._main) is not None


def _alone(program: _Program) -> str:
    sizes = list(_sizes(program))
    if any(size is not None and size != 1 for _, size in sizes):
        return ""
    one = [name for name, size in sizes if size == 1]
    if one:
        return f"{' and '.join(one)} knows of 1 process"
    if program.knows_its_place:
        return ""
    never = [name for name, size in sizes if size is None]
    return f"{' and '.join(never)} was never initialized" if never else ""


def _sizes(program: _Program) -> Iterator[Size]:
    if program.uses("horovod"):
        yield from _horovod()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_finalized():
        yield "MPI.COMM_WORLD", ENDED
    elif mpi is not None and mpi.Is_initialized():
        yield "MPI.COMM_WORLD", int(mpi.COMM_WORLD.Get_size())
    if program.uses(*_ON_TORCH):
        yield from _torch()
        yield from _accelerate()
    if program.uses("tensorflow", "keras"):
        yield from _tensorflow()
    if program.uses("jax"):
        yield "jax.distributed", _jax()


def _horovod() -> Iterator[Size]:
    sets = sys.modules.get("horovod.common.process_sets")
    ranks = getattr(getattr(sets, "global_process_set", None), "ranks", None)
    if ranks:  # which outlast shutdown()
        yield "Horovod", len(ranks)


def _torch() -> Iterator[Size]:
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None:
        if "torch" in sys.modules:
            yield "torch.distributed", None
    elif c10d.is_initialized():
        yield "torch.distributed", int(c10d.get_world_size())
    elif getattr(c10d, "_default_pg_init_method", None) is None:
        yield "torch.distributed", None
    else:
        yield "torch.distributed", ENDED


def _accelerate() -> Iterator[Size]:
    state = sys.modules.get("accelerate.state")
    shared = getattr(getattr(state, "PartialState", None), "_shared_state", None)
    if shared and "num_processes" in shared:
        yield "Accelerate", int(shared["num_processes"])


def _tensorflow() -> Iterator[Size]:
    module = sys.modules.get("tensorflow.python.eager.context")
    context = module._context if module is not None else None
    servers: List[Any] = [getattr(context, n, None) for n in _SERVERS]
    if any(each is not None for each in servers):
        yield "TensorFlow", ENDED
    else:
        yield "a strategy of TensorFlow", None


_SERVERS = ("_server_def", "_collective_ops_server_def")


def _jax() -> Optional[int]:
    distributed = sys.modules.get("jax._src.distributed")
    state = getattr(distributed, "global_state", None)
    return getattr(state, "num_processes", None)
