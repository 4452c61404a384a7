"""Packing where a job runs: how far it is stands in the log."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Optional, Sequence

from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.packing import packing
from distrain_nb.worker.packing.errors import PackingRefused

TOLD_EVERY_S = 5.0


def pack(
    source: str, target: str, size: float, shuffle: Optional[int], mounted: Sequence[str] = ()
) -> Dict[str, Any]:
    """Pack, and give what there is now: `place`, `samples`, `shards`, `size` in bytes, `classes`,
    how many shards an earlier packing had `kept`, and `notes`.

    `mounted` are folders that must be there already: what is written below a folder that no bucket
    is mounted at would be gone with the machine. Raises as `packing.pack` does.
    """
    for folder in mounted:
        if not os.path.isdir(folder):
            raise PackingRefused(f"no bucket is mounted at {folder}: create it, or see its rights")
    packed = packing.pack(source, target, size, shuffle, _Progress().hear)
    print(packed, flush=True)
    return {**packed._asdict(), "classes": list(packed.classes), "notes": list(packed.notes)}


class _Progress:
    """Prints what is done, each phase at once and then from time to time."""

    def __init__(self) -> None:
        self._phase, self._next = "", 0.0

    def hear(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase == self._phase and now < self._next:
            return
        self._phase, self._next = phase, now + TOLD_EVERY_S
        print(f"{phase}: {_share(done, total)}" if total else phase, flush=True)


def _share(done: int, total: int) -> str:
    return f"{100 * done // total}%, {readable_size(done)} of {readable_size(total)}"
