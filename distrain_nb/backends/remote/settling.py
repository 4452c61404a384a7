"""Lines of a log that arrive late, out of order and more than once: each once, and in order.

A span of the log is read again that overlaps the one before; what was seen there is known by its
id; and what may still be overtaken is held back until it has settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from distrain_nb.backends.remote.service import Cursor

NS = 10**9


@dataclass(frozen=True)
class Patience:
    """Seconds: how long a line is held back, and how much later than its settled successors it may
    still come."""

    settle: float = 5.0
    late: float = 20.0

    @classmethod
    def of_rehearsal(cls, late: float) -> Self:
        """On this machine lines come at once, or as many seconds late as it is told to be."""
        return cls(settle=1.0 + late, late=20.0 + late)


@dataclass(frozen=True, order=True)
class Line:
    """A line as it is held back: when it was written (ns), its id, when we got it (s), from where
    and what. Ids of lines of the same time sort as they were written."""

    time: int
    id: str
    got: float
    source: str
    text: str
    stream: str = "o"


def since(cursor: Cursor) -> int:
    """Where to read from (ns); 0 is the beginning."""
    return int(cursor.get("low", 0))


def settle(
    found: Iterable[Line], cursor: Cursor, now: float, patience: Patience, *, last: bool
) -> tuple[list[Line], Cursor]:
    """What has settled of the lines that were found and of those held back, and the cursor then.

    `last` gives them all.
    """
    low, seen = since(cursor), dict(cursor.get("seen", {}))
    held = [Line(*line) for line in cursor.get("held", ())]
    for line in found:
        if line.id not in seen:
            seen[line.id] = line.time
            held.append(line)
    held.sort()
    settled, held = (held, []) if last else _split(held, seen, now, patience)
    if settled:
        low = max(low, settled[-1].time - int(patience.late * NS))
    seen = {each: moment for each, moment in seen.items() if moment >= low}
    kept = [[x.time, x.id, x.got, x.source, x.text, x.stream] for x in held]
    return settled, {"low": low, "seen": seen, "held": kept}


def _split(
    held: list[Line], seen: dict[str, int], now: float, patience: Patience
) -> tuple[list[Line], list[Line]]:
    """Those that are old enough, by the service's clock or by ours, with all that go before."""
    horizon = max(seen.values(), default=0) - int(patience.settle * NS)
    for line in held:
        if now - line.got >= patience.settle:
            horizon = max(horizon, line.time)
    cut = next((n for n, line in enumerate(held) if line.time > horizon), len(held))
    return held[:cut], held[cut:]
