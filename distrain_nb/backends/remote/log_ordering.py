"""Lines of a log that arrive late, out of order and more than once: each once, and in order.

A span of the log is read again that overlaps the one before; what was seen there is known by its
id; and what may still be overtaken is held back until it has settled. Of a service that says when
it received a line, what it received lately is read too, however old: a line that comes very late
is given late, and not lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from distrain_nb.backends.remote.clock import is_recent

if TYPE_CHECKING:
    from typing_extensions import Self

    from distrain_nb.backends.remote.service import Cursor

NS = 10**9


@dataclass(frozen=True)
class Lateness:
    """Seconds: how long a line is held back, and how much later than its settled successors it may
    still come."""

    settle: float = 5.0
    late: float = 20.0

    @classmethod
    def of_rehearsal(cls, late: float) -> Self:
        """Return the lateness of a rehearsal: lines come at once, or as many seconds late as
        set."""
        return cls(settle=1.0 + late, late=20.0 + late)


@dataclass(frozen=True, order=True)
class HeldLine:
    """A line as it is held back: when it was written (ns), its id, when we got it (s), from where
    and what, and when the service received it (ns) if it says so. Ids of lines of the same time
    sort as they were written."""

    time: int
    id: str
    got: float
    source: str
    text: str
    stream: str = "o"
    received: int = 0

    @property
    def newest(self) -> int:
        """What it is found by longest (ns)."""
        return max(self.time, self.received)


class Position(TypedDict, total=False):
    """What a cursor has, times in ns: where to read from, from when on what was received is to be
    read too, and the newest line's time; lines that may come again, by id, with what they are found
    by; and those that may still be overtaken, each as the values of a `HeldLine`."""

    low: int
    received: int
    latest: int
    seen: dict[str, int]
    held: list[tuple[int, str, float, str, str, str, int]]


def _place(cursor: Cursor) -> Position:
    return cast("Position", cursor)


def since(cursor: Cursor) -> int:
    """Return where to read from (ns); 0 is the beginning."""
    return _place(cursor).get("low", 0)


def received_since(cursor: Cursor) -> int:
    """Return the time (ns) from which received lines are read too; 0 if the service doesn't
    tell."""
    return _place(cursor).get("received", 0)


def settle(
    lines: Iterable[HeldLine], cursor: Cursor, now: float, lateness: Lateness, *, last: bool
) -> tuple[list[HeldLine], Cursor]:
    """Return the new and held-back lines whose order is final, and the cursor after them.

    `last` gives them all.
    """
    place = _place(cursor)
    low, received, latest = since(cursor), received_since(cursor), place.get("latest", 0)
    newest, held = dict(place.get("seen", {})), [HeldLine(*line) for line in place.get("held", ())]
    late = int(lateness.late * NS)
    for line in lines:
        if line.id not in newest:
            newest[line.id] = line.newest
            held.append(line)
            latest = max(latest, line.time)
            received = max(received, line.received - late)
    held.sort()
    horizon = latest - int(lateness.settle * NS)
    settled, held = (held, []) if last else _split(held, horizon, now, lateness)
    if settled:
        low = max(low, settled[-1].time - late)
    oldest = min(low, received) if received else low
    newest = {item: moment for item, moment in newest.items() if moment >= oldest}
    cursor = {"low": low, "received": received, "latest": latest, "seen": newest}
    return settled, {**cursor, "held": [list(astuple(line)) for line in held]}


def _split(
    held: list[HeldLine], horizon: int, now: float, lateness: Lateness
) -> tuple[list[HeldLine], list[HeldLine]]:
    """Return those that are old enough, by the service's clock or by ours, with all that go
    before."""
    for line in held:
        if not is_recent(line.got, lateness.settle, now):
            horizon = max(horizon, line.time)
    cut = next((n for n, line in enumerate(held) if line.time > horizon), len(held))
    return held[:cut], held[cut:]
