"""Watches replicas on other hosts: parameter servers and reducers don't end by themselves."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Iterable, List, Optional, Set, Union

from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.launch import ProcessSpec
from distrain_nb.worker.files.status import Status

CONNECT_WITHIN_S = 2.0
RETRY_EVERY_S = 0.5
LOOK_EVERY_S = 1.0
# By then its host has come up, and gone again before this one had.
THERE_WITHIN_S = 600.0

# The job is over when the primary ends, and these don't end by themselves. Reducers still sum for
# workers that may finish.
REDUCERS = "reducers"
SERVING_ROLES = frozenset(["servers", REDUCERS])


class Primary:
    """Watches the primary by a connection to an address that its supervisor holds open."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._connection: Optional[socket.socket] = None
        self._try_at = time.monotonic()
        self._give_up_at = self._try_at + THERE_WITHIN_S

    def has_ended(self) -> bool:
        """Tell whether the primary has gone, or could not be reached in time."""
        if self._connection is None:
            self._try()
            return time.monotonic() > self._give_up_at
        try:
            return self._connection.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _try(self) -> None:
        if time.monotonic() < self._try_at:
            return
        try:
            self._connection = socket.create_connection(self._address, CONNECT_WITHIN_S)
            self._connection.setblocking(False)
            self._give_up_at = float("inf")
        except OSError:
            self._try_at = time.monotonic() + RETRY_EVERY_S


class FolderPrimary:
    """Watches replicas by their statuses, in folders that this host sees too."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._unfinished: List[Path] = [Path(folder) for folder in folders]
        self._look_at = 0.0

    def has_ended(self) -> bool:
        """Tell whether all of them have come to an end."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_EVERY_S
            self._unfinished = [path for path in self._unfinished if not _is_final(path)]
        return not self._unfinished


def followed_primary(text: str) -> Union[Primary, FolderPrimary, None]:
    """Return what a launch `follows`: an address, folders, or nothing."""
    if text.startswith("/"):
        return FolderPrimary(text.split("\n"))
    return Primary(text) if text else None


def _is_final(folder: Path) -> bool:
    try:
        return Status.read(folder).state.final
    except (FileNotFoundError, Damaged):
        return False


def endless_roles(processes: Iterable[ProcessSpec], followed: object) -> Set[str]:
    """Return the roles that don't end by themselves: workers of servers wait for work; where a
    primary elsewhere is `followed`, all do."""
    roles = {process.role for process in processes}
    if followed:
        return roles
    return {*SERVING_ROLES, "workers"} if "servers" in roles else set(SERVING_ROLES)
