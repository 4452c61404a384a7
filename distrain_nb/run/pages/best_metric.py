"""How far a run got by its metrics: the newest value of each, and the best of the one that counts.

Of an ended run it is kept in its folder, so that a list of hundreds is read at once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distrain_nb.run.metrics.events import EventFolder, event_files, file_size
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import EVENTS_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

JUDGED_FILE = "judged.json"
LOW_IS_GOOD = ("loss", "error", "perplexity", "mse", "mae", "rmse")
HIGH_IS_GOOD = ("acc", "auc", "f1", "score", "precision", "recall", "reward", "bleu")
HELD_OUT = ("val", "test", "eval")


@dataclass(frozen=True)
class Best:
    """The metric that a run is judged by, and how far it got: `kind` is min, max or last."""

    tag: str
    kind: str
    value: float


@dataclass(frozen=True)
class Judged:
    """The newest value of each metric, by tag, and the best one."""

    last: dict[str, float]
    best: Best | None


def judged(events: EventFolder) -> Judged:
    """From what has been read so far."""
    values = _values(events)
    last = {tag: float(points[-1]) for tag, points in values.items()}
    return Judged(last, best(values))


def judged_for_good(folder: Path) -> Judged:
    """Of a run that has ended; read from its event files only once, unless they change."""
    size = sum(file_size(path) for path in event_files(folder / EVENTS_FOLDER))
    kept = _kept(folder, size)
    if kept is None:
        events = EventFolder(folder / EVENTS_FOLDER)
        events.read()
        kept = judged(events)
        _keep(folder, size, kept)
    return kept


def best(values: dict[str, np.ndarray[Any, Any]]) -> Best | None:
    """The lowest of what should be low or the highest of what should be high, else the last value.

    A metric of held-out data comes before one of training data; NaN counts for nothing.
    """
    judged = [tag for tag in values if _kind(tag) != "last"] or list(values)
    for tag in sorted(judged, key=lambda tag: not _has(tag, HELD_OUT)):
        finite = values[tag][np.isfinite(values[tag])]
        if len(finite):
            kind = _kind(tag)
            chosen = {"min": finite.min(), "max": finite.max(), "last": finite[-1]}
            return Best(tag, kind, float(chosen[kind]))
    return None


def _kept(folder: Path, size: int) -> Judged | None:
    try:
        told = json.loads((folder / JUDGED_FILE).read_text(encoding="utf-8"))
        if told["size"] != size:
            return None
        return Judged(told["last"], Best(**told["best"]) if told["best"] else None)
    except (OSError, ValueError, KeyError, TypeError):  # none yet, or of another version
        return None


def _keep(folder: Path, size: int, found: Judged) -> None:
    try:
        replace_file(folder / JUDGED_FILE, json.dumps({"size": size, **asdict(found)}).encode())
    except OSError:  # a full disk: it is read anew the next time
        return


def _values(events: EventFolder) -> dict[str, np.ndarray[Any, Any]]:
    """The values by tag; of several series the first counts, as it is rank 0's or the only one."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for key in events.keys:
        points = events.points(key)
        if len(points):
            found.setdefault(key.tag, points["value"])
    return found


def _kind(tag: str) -> str:
    if _has(tag, LOW_IS_GOOD):
        return "min"
    return "max" if _has(tag, HIGH_IS_GOOD) else "last"


def _has(tag: str, words: tuple[str, ...]) -> bool:
    return any(word in tag.lower() for word in words)
