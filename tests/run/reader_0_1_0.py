"""How version 0.1.0 read a run's folder: its own code, without what writes.

A version that writes what this can't read breaks a kernel, a server or a carrier that was started
before it was installed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar


class State(str, Enum):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Owner:
    pid: int
    started: str


@dataclass(frozen=True)
class Process:
    index: int
    label: str
    role: str
    replica: int
    rank: int | None = None
    pid: int | None = None
    outcome: str = ""


@dataclass(frozen=True)
class Progress:
    phase: str
    done: int = 0
    total: int = 0
    since: float = 0.0


Part = TypeVar("Part")
_NUMBER, _TEXT = (int, float), (str,)
_KINDS = {
    **dict.fromkeys(("phase", "label", "role", "outcome", "error", "note", "started"), _TEXT),
    **dict.fromkeys(("done", "total", "since"), _NUMBER),
    **dict.fromkeys(("index", "replica", "pid", "rank"), (int, type(None))),
}


def _sound(part: Part) -> Part:
    for name, value in vars(part).items():
        if not isinstance(value, _KINDS.get(name, (object,))):
            raise TypeError(f"{name} is {value!r:.60}")
    return part


@dataclass(frozen=True)
class Status:
    state: State
    phase: str = ""
    times: dict[str, float] = field(default_factory=dict)
    error: str = ""
    note: str = ""
    supervisor: Owner | None = None
    processes: tuple[Process, ...] = ()
    progress: Progress | None = None

    @classmethod
    def read(cls, folder: Path) -> Status:
        raw = json.loads((folder / "status.json").read_text(encoding="utf-8"))
        raw["state"] = State(raw["state"])
        raw["times"] = {state: float(at) for state, at in raw["times"].items()}
        raw["supervisor"] = _sound(Owner(**raw["supervisor"])) if raw["supervisor"] else None
        raw["processes"] = tuple(_sound(Process(**p)) for p in raw["processes"])
        raw["progress"] = _sound(Progress(**raw["progress"])) if raw.get("progress") else None
        return _sound(cls(**raw))


@dataclass(frozen=True)
class ProcessSpec:
    label: str
    role: str
    replica: int
    rank: int | None
    environment: dict[str, str]
    serves: bool = False


@dataclass(frozen=True)
class Launch:
    processes: tuple[ProcessSpec, ...]
    working_folder: str
    ports: int = 0
    preload: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    mpirun: tuple[str, ...] = ()
    awaits: str = ""
    holds: str = ""
    follows: str = ""
    kernel: Owner | None = None
    grace: float = 1.5
    timeout: float | None = None
    distributes: bool = True

    @classmethod
    def read(cls, folder: Path) -> Launch:
        raw = json.loads((folder / "launch.json").read_text(encoding="utf-8"))
        raw["processes"] = tuple(ProcessSpec(**p) for p in raw["processes"])
        raw["kernel"] = Owner(**raw["kernel"]) if raw["kernel"] else None
        for name in ("preload", "results", "mpirun"):
            raw[name] = tuple(raw[name])
        return cls(**raw)


@dataclass(frozen=True)
class Failure:
    process: int
    began: float
    summary: str
    traceback: str = ""
    label: str = "the launcher"

    @classmethod
    def read(cls, folder: Path, process: int) -> Failure:
        return cls(**json.loads((folder / f"failure-{process}.json").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Submission:
    backend: str
    told: dict[str, Any]
    processes: tuple[Process, ...]
    kernel: Owner | None = None
    rehearse: str | None = None

    @classmethod
    def read(cls, folder: Path) -> Submission:
        raw = json.loads((folder / "submission.json").read_text(encoding="utf-8"))
        raw["processes"] = tuple(Process(**process) for process in raw["processes"])
        raw["kernel"] = Owner(**raw["kernel"]) if raw["kernel"] else None
        return cls(**raw)


@dataclass
class Journal:
    request: dict[str, Any] | None = None
    sent: float = 0.0
    job: str = ""
    cursor: dict[str, Any] = field(default_factory=dict)
    log_size: int = 0
    points_size: int = 0
    labels: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Journal:
        return cls(**json.loads((folder / "carrier.json").read_text(encoding="utf-8")))
