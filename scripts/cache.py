"""Where tests and scripts keep what takes long to make: base images, wheels, environments.

It lies outside the checkout, so that the next clone finds it. Names carry what the content depends
on; deleting the folder is always safe.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache(name: str) -> Path:
    """Name a folder for what any checkout of this user may share."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "distrain-nb-dev" / name
