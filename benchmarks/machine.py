"""What a benchmark ran on: to be written down with its figures."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def describe(*packages: str) -> str:
    """The machine, the interpreter, and the versions of the packages that are compared."""
    cpu = next(
        (line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"{os.cpu_count()} cores ({cpu}), {memory:.0f} GB, Linux {platform.release()},"
        f" Python {platform.python_version()}, {versions}"
    )


def _cpu_lines() -> list[str]:
    return Path("/proc/cpuinfo").read_text().splitlines()
