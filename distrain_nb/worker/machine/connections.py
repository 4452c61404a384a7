"""TCP connections, from Linux's /proc: where a socket leads to, and who holds the other end."""

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Sequence

# Who is at the other end of a connection: nobody that the run has, one of its ranks, or who asks.
OUTSIDE, RANK, ITSELF = "outside", "rank", "itself"
_LISTENS = "0A"  # tcp_states.h


class _End(NamedTuple):
    """A socket: its addresses as HOST:PORT, its state, and its inode, 0 before it is accepted."""

    local: str
    remote: str
    state: str
    inode: str


class Connections:
    """The TCP connections that a process can see, those of its network namespace."""

    def __init__(self, pid: int) -> None:
        self._ends = [end for name in ("tcp", "tcp6") for end in _read(f"/proc/{pid}/net/{name}")]

    def peer(self, target: str) -> str:
        """Return where `socket:[INODE]` leads to, as HOST:PORT; empty where it isn't connected."""
        return next((end.remote for end in self._ends if f"socket:[{end.inode}]" == target), "")

    def answerer(self, pid: int, target: str, holders: Dict[str, int]) -> str:
        """Return who can answer on a socket of that process; empty where it isn't connected.

        `holders` has the sockets that ranks hold. Before a connection is accepted, who listens
        at its address counts.
        """
        ends = [end for end in self._ends if f"socket:[{end.inode}]" == target and end.remote]
        for end in ends:
            port = end.remote.rpartition(":")[2]
            far = [e.inode for e in self._ends if (e.local, e.remote) == (end.remote, end.local)]
            if far == ["0"]:
                far = [
                    e.inode
                    for e in self._ends
                    if e.state == _LISTENS and e.local.rpartition(":")[2] == port
                ]
            holder = next((holders[i] for i in map("socket:[{}]".format, far) if i in holders), 0)
            return (ITSELF if holder == pid else RANK) if holder else OUTSIDE
        return ""


def holders(pids: Sequence[int]) -> Dict[str, int]:
    """Return which of these processes holds each of their sockets, `socket:[INODE]`.

    A socket that several hold, as a parent and its child, is that of the process named last.
    """
    result: Dict[str, int] = {}
    for pid in pids:
        for target in targets(pid):
            if target.startswith("socket:"):
                result[target] = pid
    return result


def targets(pid: int) -> List[str]:
    """Return what the descriptors of a process lead to, as far as it is ours to see."""
    entries = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                entries.append(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:  # just closed
                pass
    except OSError:  # it has ended
        pass
    return entries


def _read(path: str) -> List[_End]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []
    rows = [row for row in rows if len(row) > 9]
    return [_End(_address(row[1]), _address(row[2]), row[3], row[9]) for row in rows]


def _address(text: str) -> str:
    """Return the kernel's hexadecimal address as HOST:PORT; empty for port 0.

    The last of the four words of an IPv6 address tells IPv4's apart, which sockets of both have.
    """
    host, _, port = text.partition(":")
    if not int(port, 16):
        return ""
    if len(host) == 8 or host.startswith("0000000000000000FFFF0000"):
        last = host[-8:]
        shown = ".".join(str(int(last[n : n + 2], 16)) for n in (6, 4, 2, 0))
    else:
        words = [host[n : n + 8] for n in range(0, 32, 8)]
        shown = f"[{':'.join(w[6:8] + w[4:6] + ':' + w[2:4] + w[0:2] for w in words).lower()}]"
    return f"{shown}:{int(port, 16)}"
