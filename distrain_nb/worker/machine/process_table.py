"""The processes of this machine, as /proc has them: who is below whom, and what each takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Container, Dict, Iterator, List, Tuple


def descendants(pid: int, without: Container[int] = ()) -> List[int]:
    """Return every living process below `pid`, except children `without` and what is below
    those."""
    if pid == os.getpid() and not _has_children(without):
        return []
    children: Dict[int, List[int]] = {}
    for child, fields in processes():
        children.setdefault(int(fields[1]), []).append(child)
    pids: List[int] = []
    below = [child for child in children.get(pid, []) if child not in without]
    while below:
        pids += below
        below = [grandchild for child in below for grandchild in children.get(child, [])]
    return pids


def _has_children(without: Container[int]) -> bool:
    """Return whether this process has others than those. That is known sooner than what all
    processes descend from; where the system doesn't tell, it may have some."""
    try:
        for thread in os.listdir("/proc/self/task"):
            # It is whole, as nobody but this process takes a child off: those that have ended stay.
            with open(f"/proc/self/task/{thread}/children") as children:
                if any(int(child) not in without for child in children.read().split()):
                    return True
    except OSError:
        return True
    return False


def processes() -> Iterator[Tuple[int, List[str]]]:
    """Yield every process, with what /proc/PID/stat has behind its name; none where there is no
    /proc.

    Raises OSError when that can't be read, for want of a free descriptor for example.
    """
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            stat = process_stat(int(entry))
            if stat:
                yield int(entry), stat


def process_stat(pid: int) -> List[str]:
    """Return the fields of /proc/PID/stat behind the process's name; empty if there is no such
    process.

    Raises OSError when it can't be read: the process may be there.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()


def resident_bytes(pid: int) -> int:
    """Return the memory that a process has to itself and shares, as `top` shows it; 0 where there
    is no such process, or no /proc."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
