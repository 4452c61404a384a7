"""The interface of all engines: what one is asked for and what it gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

GRACE_S = 10.0


@dataclass(frozen=True)
class ReplicaSpec:
    """A container to run. Empty `command` and `arguments` mean what the image says.

    `mounts` are folders of this machine by where the container sees them; one that is a link is
    only read.
    """

    name: str
    image: str
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, Path] = field(default_factory=dict)


def share_of_cores(replicas: int) -> dict[str, str]:
    """Return the variables by which so many replicas compute at once on this machine's cores.

    Threads of OpenMP that wait for one without a core would spin: 20 times the CPU time.
    """
    threads = max(1, (os.cpu_count() or 1) // replicas)
    return {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}


class Running(Protocol):
    """A replica that has been started."""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Stream (`o` or `e`) and text of each line as it is written, until both streams end."""

    def status(self) -> int | None:
        """Return the exit status, as a shell gives it; None while it runs."""

    def stop(self, grace: float = GRACE_S) -> None:
        """Send SIGTERM, then SIGKILL after `grace` seconds. Returns when it has ended."""


class Network(Protocol):
    """The network of one job: its replicas find each other by name."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """`host:port` of each replica by its name."""

    @property
    def interface(self) -> str:
        """The network interface by which they meet, such as `eth0`."""

    def reach(self, port: int) -> str:
        """Return the `host:port` by which replicas reach a port of this machine; empty where they
        can't."""

    def start(self, replica: ReplicaSpec) -> Running:
        """Run a replica. Its image has been pulled."""

    def close(self) -> None:
        """Take down what is left of the job."""


class Engine(Protocol):
    """Runs containers: `note` says in a sentence how."""

    @property
    def note(self) -> str: ...

    def pull(self, image: str) -> None:
        """Have the image here. Raises ImageError with the reason if that fails."""

    def network(self, job: str, names: Sequence[str], *, apart: bool = False) -> Network:
        """Return a network for the replicas of these names.

        `apart`: ports of one must not stand in another's way, where the engine has a choice.
        """
