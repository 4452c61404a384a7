"""Where tests and scripts keep what takes long to make: base images, wheels, environments.

It lies outside the checkout, so that the next clone finds it. Names carry what the content depends
on; deleting the folder is always safe.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache(name: str) -> Path:
    """Name a folder for what any checkout of this user may share."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "distrain-nb-dev" / name


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Let one process at a time make what lies at *path*; the next finds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
