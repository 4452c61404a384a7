"""The memory that is left to a process, and the processes that were killed for want of it."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Iterator, Tuple

_NO_LIMIT = 1 << 60


def available(
    proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup"), process: str = "self"
) -> int:
    """Return bytes that a process can still have: the least of what the machine and each of its
    control groups have.

    Where nothing can be read, there is no limit known. What a group holds of files that were read
    can be had again, so it doesn't count.
    """
    machine = _numbers(proc / "meminfo").get("MemAvailable:")
    free = [_NO_LIMIT if machine is None else machine << 10]
    free += [limit - used for limit, used in _groups(proc / process / "cgroup", cgroups)]
    return max(0, min(free))


def _groups(membership: Path, cgroups: Path) -> Iterator[Tuple[int, int]]:
    """Yield (limit, used) in bytes of each control group of a process that has a limit."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = cgroups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = cgroups / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        below = root / path.lstrip("/")
        for group in (below, *below.parents):
            limit, used = (_text(group / name).strip() for name in names[:2])
            if limit.isdigit() and used.isdigit():
                files = _numbers(group / "memory.stat").get(names[2], 0)
                yield int(limit), int(used) - files
            if group == root:
                break


def _numbers(path: Path) -> Dict[str, int]:
    """Return the lines `name number` of a file."""
    words = [line.split() for line in _text(path).splitlines()]
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def out_of_memory_kills() -> int:
    """Return how many processes the machine has killed for want of memory since it started."""
    try:
        counters = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in counters if line.startswith("oom_kill "))
