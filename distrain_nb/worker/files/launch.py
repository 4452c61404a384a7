"""The launch file: all that a supervisor needs to start a run.

Marks that ranks leave in the run's folder for their host's supervisor: those of `mpirun`, and
those that save when they are stopped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, Optional, Sequence, Tuple

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import (
    BEGUN_FILE,
    LAUNCH_FILE,
    SAVED_FILE,
    STEPS_FILE,
    STOP_FILE,
    SUCCEEDED_FILE,
)
from distrain_nb.worker.files.status import Owner

RUN = "${RUN}"
# What a replica is told of `timeout` and `signal_before`, in seconds.
TIMEOUT_VARIABLE, SIGNAL_VARIABLE = "DISTRAIN_TIMEOUT", "DISTRAIN_SIGNAL_BEFORE"
# What a fork server may import before it forks: frameworks that start no thread when imported,
# checked by a test. Whatever else a program imports, its ranks import themselves.
FORK_SAFE = ("numpy", "scipy", "pandas", "sklearn", "torch", "tensorflow")
# What libraries import of these, for seconds. They themselves read the rank, or settings that a
# program may make, when they are imported.
IMPORTED_BY = {
    "lightgbm": ("pandas", "sklearn"),
    "lightning": ("scipy.stats", "scipy.signal"),
    "pytorch_lightning": ("scipy.stats", "scipy.signal"),
    "torchmetrics": ("scipy.stats", "scipy.signal"),
    "transformers": ("scipy.optimize",),
    "xgboost": ("pandas", "sklearn"),
}
# What the first optimizer of PyTorch imports, or a model of transformers, in a second; it starts no
# thread either.
OPTIMIZER = "torch._dynamo"


@dataclass(frozen=True)
class ProcessSpec:
    """One process: `environment` has only what is added to the supervisor's own.

    In a value, `${RUN}` stands for the run's folder and `${PORT_0}`, `${PORT_1}`… for ports that
    the supervisor finds free. One that `serves` is a TensorFlow parameter server, which runs
    nothing of the program.
    """

    label: str
    role: str
    replica: int
    rank: Optional[int]
    environment: Dict[str, str]
    serves: bool = False


@dataclass(frozen=True)
class Launch:
    """A run to start on this machine.

    `kernel` is the process that waits for the run and that it must not outlive; `preload` names
    modules that are imported before the ranks are forked; `mpirun` is the command that starts the
    ranks instead of a fork; `awaits` is this host's address, `host:port`, where another host's
    `mpirun` has them started; `holds` is an address that is open for as long as this run lasts,
    and `follows` that of the primary, with which this one ends, or the folders of the replicas that
    this one serves, one a line; with `distributes` the ranks are to form one world; `signal_before`
    is how long ahead of its time limit a program is asked to save, and how long it may then take;
    times are in seconds. The run is started again up to `retries` times after ends of the causes in
    `retried` (`supervisor/retries.py`). It has cost what `--max-cost` allows after `cost_limit`
    seconds, as `cost_words` say then. Ranks `in_turn` run alone, one after another
    (`rank/dry_rank.py`).
    """

    processes: Tuple[ProcessSpec, ...]
    working_folder: str
    ports: int = 0
    preload: Tuple[str, ...] = ()
    results: Tuple[str, ...] = ()
    mpirun: Tuple[str, ...] = ()
    awaits: str = ""
    holds: str = ""
    follows: str = ""
    kernel: Optional[Owner] = None
    grace: float = 1.5
    timeout: Optional[float] = None
    signal_before: Optional[float] = None
    distributes: bool = True
    retries: int = 0
    retried: Tuple[str, ...] = ()
    cost_limit: Optional[float] = None
    cost_words: str = ""
    in_turn: bool = False

    def write(self, folder: Path) -> None:
        replace_file(folder / LAUNCH_FILE, fields.encode(self))

    @classmethod
    def read(cls, folder: Path) -> Launch:
        """Raise FileNotFoundError; `fields.Damaged`."""
        return fields.read(cls, folder / LAUNCH_FILE)


def fill(environment: Dict[str, str], folder: Path, ports: Sequence[int]) -> Dict[str, str]:
    """Return the environment with what was not known when it was planned."""
    texts = {f"${{PORT_{number}}}": str(port) for number, port in enumerate(ports)}
    texts[RUN] = str(folder)
    filled = dict(environment)
    for name, value in environment.items():
        for placeholder, text in texts.items():
            value = value.replace(placeholder, text)
        filled[name] = value
    return filled


def begin(folder: Path, process: int) -> None:
    """Note that this process has become the rank of that number."""
    replace_file(folder / BEGUN_FILE.format(process), fields.encode(Owner.of(os.getpid())))


def succeed(folder: Path, process: int) -> None:
    """Note that the program of that rank has ended without an error."""
    (folder / SUCCEEDED_FILE.format(process)).touch()


def has_succeeded(folder: Path, process: int) -> bool:
    """Return whether that rank has come to its end."""
    return (folder / SUCCEEDED_FILE.format(process)).exists()


def pid_of(folder: Path, process: int) -> Optional[int]:
    """Return the process id of that rank; None before it has begun, and when it has ended."""
    try:
        owner = fields.read(Owner, folder / BEGUN_FILE.format(process))
    except (OSError, fields.Damaged):
        return None
    return owner.pid if owner.alive else None


def living(folder: Path) -> Iterator[int]:
    """Yield the process ids of the ranks that are at work."""
    for file in folder.glob(BEGUN_FILE.format("*")):
        owner = fields.read(Owner, file)
        if owner.alive:
            yield owner.pid


@dataclass(frozen=True)
class Stop:
    """How far a rank is that has asked to save when it is stopped.

    `saves` is whether it has given a function to `on_stop`; `began` and `saved` are times since the
    epoch; `error` is why the function failed; `agreed` is the call of `stopping` that was the last
    on all ranks. A rank that `ends_itself` isn't to be ended once it has saved; one that `waits`
    has saved, and ranks on other machines have not.
    """

    saves: bool = False
    began: Optional[float] = None
    saved: Optional[float] = None
    error: str = ""
    agreed: int = 0
    ends_itself: bool = False
    waits: bool = False

    @property
    def done(self) -> bool:
        """Whether the rank may be ended."""
        return (self.saved is not None or self.error != "") and not (self.ends_itself or self.waits)

    def write(self, folder: Path, process: int) -> None:
        replace_file(folder / STOP_FILE.format(process), fields.encode(self))

    @classmethod
    def read(cls, folder: Path, process: int) -> Optional[Stop]:
        """Return None where the rank hasn't asked."""
        try:
            return fields.read(cls, folder / STOP_FILE.format(process))
        except (OSError, fields.Damaged):
            return None


def forget_stops(folder: Path) -> None:
    """Remove what ranks of an earlier attempt have left."""
    for file in [*folder.glob(STOP_FILE.format("*")), folder / SAVED_FILE, folder / STEPS_FILE]:
        if file.exists():
            file.unlink()
