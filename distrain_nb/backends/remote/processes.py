"""The processes of a job, as its log names them, and processes here that outlive this one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.worker.files.status import Process
from distrain_nb.worker.replica.replica import TRAINING_ROLES, label

if TYPE_CHECKING:
    from distrain_nb.layout import Layout

_started: list[subprocess.Popen[bytes]] = []  # kept, so that they are reaped


def processes_of(layout: Layout, per_replica: int) -> Iterator[Process]:
    """Yield the processes of a layout with so many ranks on each training replica, those of the
    world first."""
    members = [(r.value, i) for r, pool in layout.pools() for i in range(pool.replicas)]
    world = [member for member in members if member[0] in TRAINING_ROLES]
    ranks = [(*member, n) for member in world for n in range(per_replica)]
    others = [(*member, None) for member in members if member[0] not in TRAINING_ROLES]
    for index, (role, replica, _) in enumerate([*ranks, *others]):
        rank = index if index < len(ranks) else None
        yield Process(index, label(role, replica, rank), role, replica, rank)


def start_detached(
    arguments: Sequence[str],
    log: Path,
    python: str = sys.executable,
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    passed: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process of Python that outlives this one; what it prints goes to the end of *log*. It
    gets the open files *passed*."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [python, *arguments],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl+C and a closed terminal reach the process group of the kernel, not this one.
            start_new_session=True,
            pass_fds=passed,
        )
    _started[:] = [item for item in _started if item.poll() is None]
    _started.append(process)
    return process
