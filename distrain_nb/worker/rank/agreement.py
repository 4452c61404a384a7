"""Agreement of ranks on the step that is their last one, without a collective."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Optional

from distrain_nb.worker.files.folder import STEPS_FILE
from distrain_nb.worker.files.launch import Launch

_NUMBER = struct.Struct("<q")


class Agreement(ABC):
    """Steps of all ranks, of which one becomes the last.

    Each rank says which step it has reached, and only then looks whether there is a pause. Who
    hears of the stop sets the pause, and then looks how far all are: of those that say more after
    that, each sees the pause, one step further at most. So the next step is one that nobody has
    passed.
    """

    def __init__(self) -> None:
        self.step = 0

    def next_step(self, asked: bool) -> bool:
        """Return whether this step is the last one."""
        self.step += 1
        self.say_step()
        if asked:
            self.set_pause()
        if not self.is_paused():
            return False
        if not self.last():
            self.set_last(self.furthest() + 1)
        return self.step >= self.last()

    @abstractmethod
    def say_step(self) -> None:
        """Let the other ranks know this rank's step."""

    @abstractmethod
    def set_pause(self) -> None:
        """Let all ranks know that one has heard of the stop."""

    @abstractmethod
    def is_paused(self) -> bool:
        """Return whether a rank has heard of the stop."""

    @abstractmethod
    def furthest(self) -> int:
        """Return the furthest step of any rank."""

    @abstractmethod
    def last(self) -> int:
        """Return the last step; 0 where none is known yet."""

    @abstractmethod
    def set_last(self, step: int) -> None:
        """Name the last step, unless another rank has."""


class ByFile(Agreement):
    """Agreement of one machine's ranks, in a file: the pause, the last step, and the step of each
    rank."""

    def __init__(self, path: Path, rank: int, world: int) -> None:
        super().__init__()
        self._rank, self._world = rank, world
        self._fd = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._put(2 + rank, 0)

    def _put(self, place: int, number: int) -> None:
        os.pwrite(self._fd, _NUMBER.pack(number), place * _NUMBER.size)

    def _get(self, place: int) -> int:
        data = os.pread(self._fd, _NUMBER.size, place * _NUMBER.size)
        return int(_NUMBER.unpack(data)[0]) if len(data) == _NUMBER.size else 0

    def say_step(self) -> None:
        self._put(2 + self._rank, self.step)

    def set_pause(self) -> None:
        self._put(0, 1)

    def is_paused(self) -> bool:
        return self._get(0) != 0

    def furthest(self) -> int:
        return max(self._get(2 + rank) for rank in range(self._world))

    def last(self) -> int:
        return self._get(1)

    def set_last(self, step: int) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if not self.last():
                self._put(1, step)
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)


class ByStore(Agreement):
    """Agreement of several machines' ranks, in the store of `torch.distributed`."""

    _PAUSE, _LAST, _STEP = "distrain/pause", "distrain/last", "distrain/step/{}"

    def __init__(self, store: Any, rank: int, world: int) -> None:
        super().__init__()
        self._store, self._rank, self._world = store, rank, world

    def _get(self, key: str) -> int:
        return int(self._store.get(key)) if self._store.check([key]) else 0

    def say_step(self) -> None:
        self._store.set(self._STEP.format(self._rank), str(self.step))

    def set_pause(self) -> None:
        self._store.set(self._PAUSE, "1")

    def is_paused(self) -> bool:
        return bool(self._store.check([self._PAUSE]))

    def furthest(self) -> int:
        return max(self._get(self._STEP.format(rank)) for rank in range(self._world))

    def last(self) -> int:
        return self._get(self._LAST)

    def set_last(self, step: int) -> None:
        self._store.compare_set(self._LAST, "", str(step))


def are_all_here(launch: Launch) -> bool:
    ranks = sum(process.rank is not None for process in launch.processes)
    return ranks >= int(os.environ.get("WORLD_SIZE", "1"))


def torch_store() -> Any:
    """Return the store of torch's default group; None where there is none."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None or not c10d.is_initialized():
        return None
    return c10d._get_default_store()


def agreement(folder: Path, process: int) -> Optional[Agreement]:
    """Return how a process of a run agrees with others; None for one that has no rank. Raises
    RuntimeError where it can't."""
    launch, world = Launch.read(folder), int(os.environ.get("WORLD_SIZE", "1"))
    rank = launch.processes[process].rank
    if rank is None:
        return None
    if are_all_here(launch):
        return ByFile(folder / STEPS_FILE, rank, world)
    store = torch_store()
    if store is None:
        raise RuntimeError(
            f"stopping() can't agree over the {world} ranks of several machines: it needs the "
            "default group of torch.distributed, so call init_process_group before it"
        )
    return ByStore(store, rank, world)
