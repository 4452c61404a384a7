"""The replicas of a job: they are started, read, watched and stopped together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from distrain_nb.program.progress import report
from distrain_nb.rehearsal.engine import GRACE_S
from distrain_nb.rehearsal.failures import JobFailed

if TYPE_CHECKING:
    from distrain_nb.rehearsal.engine import Network, ReplicaSpec, Running
    from distrain_nb.rehearsal.faults import Preemption

_LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class AttemptEnd:
    """Why replicas are to run no longer.

    `replica` has failed with the exit status `status`, or has lost its machine. `limit` is the time
    limit that is reached.
    """

    cause: Literal["completed", "failed", "lost", "timeout", "stopped"]
    replica: str = ""
    status: int = 0
    limit: str = ""


class Replicas:
    """The replicas of a job by name, on its network.

    `losses` are the preemptions to come: one that happens is taken from the list. `read` gets the
    replica, the stream (`o` or `e`) and the text of each line.
    """

    def __init__(
        self, network: Network, losses: list[Preemption], read: Callable[[str, str, str], None]
    ) -> None:
        self.network = network
        self._losses = losses
        self._read = read
        self._running: dict[str, Running] = {}
        self._readers: list[threading.Thread] = []
        self._printed: set[str] = set()  # of the texts that preemptions wait for
        self._began = 0.0

    @property
    def ran(self) -> float:
        """Seconds since the first of them was started."""
        return time.monotonic() - self._began if self._began else 0.0

    def start(self, specs: Mapping[str, ReplicaSpec]) -> None:
        """Start replicas, also in the place of some that were stopped."""
        self._began = self._began or time.monotonic()
        for number, (name, spec) in enumerate(specs.items(), 1):
            report(f"starting replica {number} of {len(specs)}")
            running = self._running[name] = self.network.start(spec)
            reader = threading.Thread(target=self._read_lines, args=(name, running), daemon=True)
            reader.start()
            self._readers.append(reader)

    def status(self, name: str) -> int | None:
        """Return the exit status of a replica; None while it runs."""
        return self._running[name].status()

    def watch(
        self,
        awaited: Collection[str],
        limits: Mapping[str, float],
        stopped: threading.Event,
        save: Callable[[], None],
    ) -> AttemptEnd:
        """Return once all that are `awaited` have ended, one has failed or is lost, or `stopped` is
        set.

        Time limits are in seconds since the first start, by name. `save` is called at each look.
        """
        while not stopped.wait(_LOOK_EVERY_S):
            save()
            end = self._end(awaited, limits)
            if end is not None:
                return end
        return AttemptEnd("stopped")

    def stop(self, names: Iterable[str] | None = None, grace: float = GRACE_S) -> None:
        """Send SIGTERM to all replicas, or to those of some names; SIGKILL after `grace` seconds.

        Returns when they have ended.
        """
        running = [self._running[name] for name in (self._running if names is None else names)]
        if running:
            with ThreadPoolExecutor(len(running)) as threads:
                list(threads.map(lambda replica: replica.stop(grace), running))

    def close(self) -> None:
        """Kill what still runs, take the network down, and read all lines to their end."""
        self.stop(grace=0.0)
        self.network.close()
        for reader in self._readers:
            reader.join()

    def _read_lines(self, name: str, running: Running) -> None:
        for stream, text in running.lines():
            self._read(name, stream, text)
            awaited = (loss.text for loss in tuple(self._losses) if loss.text)
            self._printed.update(part for part in awaited if part in text)

    def _end(self, awaited: Collection[str], limits: Mapping[str, float]) -> AttemptEnd | None:
        statuses = {name: self.status(name) for name in self._running}
        for name, status in statuses.items():
            if status:
                return AttemptEnd("failed", name, status)
        if all(statuses[name] == 0 for name in awaited):
            return AttemptEnd("completed")
        for loss in self._losses:
            if loss.text in self._printed if loss.text else self.ran >= loss.seconds:
                self._losses.remove(loss)
                if loss.replica not in statuses:
                    raise JobFailed(
                        f"{loss.replica} can't lose its machine: the replicas of the job are "
                        f"{', '.join(statuses)}."
                    )
                return AttemptEnd("lost", loss.replica)
        reached = (name for name, seconds in limits.items() if self.ran >= seconds)
        limit = next(reached, None)
        return None if limit is None else AttemptEnd("timeout", limit=limit)
