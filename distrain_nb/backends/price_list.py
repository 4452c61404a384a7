"""The price list of a service, kept on this machine for a day."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.config import private_home
from distrain_nb.worker.files.disk import replace_file

if TYPE_CHECKING:
    from distrain_nb.types import JsonObject

CACHE = "cache/prices"
A_DAY_S = 24 * 3600.0

_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def cached_answer(name: str, ask: Callable[[], JsonObject]) -> JsonObject:
    """Return a list of prices as it was asked for within a day, else as it is asked for now. Raises
    what `ask` raises."""
    with _LOCKS[name]:
        return _cached_answer(private_home() / CACHE / f"{name}.json", ask)


def _cached_answer(path: Path, ask: Callable[[], JsonObject]) -> JsonObject:
    with suppress(OSError, ValueError):
        if 0 <= time.time() - path.stat().st_mtime < A_DAY_S:
            return _read(path, path.stat().st_mtime_ns)
    answer = ask()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(answer).encode())
    return answer


@lru_cache(maxsize=8)
def _read(path: Path, version: int) -> JsonObject:  # noqa: ARG001
    held: JsonObject = json.loads(path.read_text(encoding="utf-8"))
    return held
