"""Files in which ranks leave each other what a proof of steps compares (`proving.py`)."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

ALONE, AGAIN = "alone", "again"  # the two times that one rank makes the steps
_WAITS_S = 60.0


def save(record: Any, path: Path) -> None:
    """Write a record, which is there as a whole or not at all."""
    import pickle

    torch: Any = sys.modules.get("torch")
    beside = path.with_suffix(".part")
    if torch is None:
        beside.write_bytes(pickle.dumps(record))
    else:
        torch.save(record, str(beside))
    os.replace(str(beside), str(path))


def load(path: Path) -> Any:
    """Read a record, which another process may be about to write."""
    deadline = time.monotonic() + _WAITS_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    torch: Any = sys.modules.get("torch")
    if torch is None:
        import pickle

        return pickle.loads(path.read_bytes())
    return torch.load(str(path), weights_only=False)
