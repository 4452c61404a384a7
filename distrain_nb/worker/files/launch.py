"""What a supervisor is asked to start: the whole of it in one file of the run's folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, Optional, Sequence, Tuple

from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.status import Owner

LAUNCH_FILE = "launch.json"
PROGRAM_FOLDER = "program"
RESULTS_FOLDER = "results"
RUN = "${RUN}"


@dataclass(frozen=True)
class ProcessSpec:
    """One process: `environment` has only what is added to the supervisor's own.

    In a value, `${RUN}` stands for the run's folder and `${PORT_0}`, `${PORT_1}`… for ports that
    the supervisor finds free. One that `serves` is a parameter server of TensorFlow's, which runs
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
    and `follows` that of the primary, with which this one ends; with `distributes` the ranks are
    to form one world; times are in seconds.
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
    distributes: bool = True

    def write(self, folder: Path) -> None:
        text = json.dumps(asdict(self), indent=1)
        replace_file(folder / LAUNCH_FILE, text.encode())

    @classmethod
    def read(cls, folder: Path) -> Launch:
        raw = json.loads((folder / LAUNCH_FILE).read_text(encoding="utf-8"))
        raw["processes"] = tuple(ProcessSpec(**p) for p in raw["processes"])
        raw["kernel"] = Owner(**raw["kernel"]) if raw["kernel"] else None
        for name in ("preload", "results", "mpirun"):
            raw[name] = tuple(raw[name])
        return cls(**raw)


def fill(environment: Dict[str, str], folder: Path, ports: Sequence[int]) -> Dict[str, str]:
    """The environment with what was not known when it was planned."""
    known = {"${PORT_%d}" % number: str(port) for number, port in enumerate(ports)}
    known[RUN] = str(folder)
    filled = dict(environment)
    for name, value in environment.items():
        for placeholder, text in known.items():
            value = value.replace(placeholder, text)
        filled[name] = value
    return filled
