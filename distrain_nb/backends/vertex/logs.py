"""The lines of all replicas from Cloud Logging, each once and in order.

Entries arrive late, out of order and more than once, and Cloud Logging can only be asked for a
span of time. So a span is read again that overlaps the one before; what was seen there is known by
its `insert_id`; and what may still be overtaken is held back until it has settled.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from google.api_core import exceptions, retry

from distrain_nb.backends.remote.service import Entry
from distrain_nb.backends.vertex.calls import CALL_S, MAY_PASS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.backends.remote.service import Cursor

PAGE = 1000
NS = 10**9

_ROLES = ("primary", "workers", "servers", "evaluators")
_TASK = re.compile(r"workerpool([0-3])-(\d+)")
_ERROR = 500  # the severity that stderr gets


@dataclass(frozen=True)
class Patience:
    """Seconds: how long a line is held back, how much later than its settled successors it may
    still come, and how long Cloud Logging may be too busy before a call ends with what it has."""

    settle: float = 5.0
    late: float = 20.0
    busy: float = 20.0

    @classmethod
    def of_rehearsal(cls, late: float) -> Patience:
        """On this machine entries come at once, or as many seconds late as it is told to be."""
        return cls(settle=1.0 + late, late=20.0 + late)


@dataclass(frozen=True, order=True)
class Line:
    """An entry as it is held back: when it was written (ns), its id, when we got it (s)."""

    time: int
    id: str
    got: float
    task: str
    stream: str
    text: str

    def entry(self) -> Entry:
        """For those who show it."""
        found = _TASK.fullmatch(self.task)
        pool, replica = (int(found[1]), int(found[2])) if found else (0, 0)
        return Entry(self.time / NS, _ROLES[pool], replica, self.text, self.stream)


def read(
    client: Any, project: str, job: str, cursor: Cursor, patience: Patience, *, last: bool
) -> tuple[list[Entry], Cursor]:
    """The lines that have settled since the cursor, and the cursor after them.

    `job` is the custom job's number. `last` gives all lines that there are. Being too busy is
    waited for; if that takes too long, the lines so far are given, or with `last` the error is
    raised, since nobody would ask again.
    """
    low, seen = int(cursor.get("low", 0)), dict(cursor.get("seen", {}))
    held = [Line(*line) for line in cursor.get("held", ())]
    now = time.time()
    for entry in _entries(client, project, job, low, patience, last=last):
        moment = entry.timestamp.seconds * NS + entry.timestamp.nanos
        if entry.insert_id not in seen:
            seen[entry.insert_id] = moment
            line = _line(entry, moment, now)
            if line is not None:
                held.append(line)
    held.sort()
    settled, held = (held, []) if last else _split(held, seen, now, patience)
    low = max(low, _low(settled, seen, patience))
    seen = {each: moment for each, moment in seen.items() if moment >= low}
    kept = [[x.time, x.id, x.got, x.task, x.stream, x.text] for x in held]
    return [line.entry() for line in settled], {"low": low, "seen": seen, "held": kept}


def _split(
    held: list[Line], seen: dict[str, int], now: float, patience: Patience
) -> tuple[list[Line], list[Line]]:
    """Those that are old enough, by the service's clock or by ours, with all that go before."""
    newest = max(seen.values(), default=0)
    horizon = newest - int(patience.settle * NS)
    for line in held:
        if now - line.got >= patience.settle:
            horizon = max(horizon, line.time)
    cut = next((n for n, line in enumerate(held) if line.time > horizon), len(held))
    return held[:cut], held[cut:]


def _low(settled: list[Line], seen: dict[str, int], patience: Patience) -> int:
    """Where to read from next time: so far before what has settled as a line may be late."""
    if not settled or not seen:
        return 0
    return settled[-1].time - int(patience.late * NS)


def _entries(
    client: Any, project: str, job: str, low: int, patience: Patience, *, last: bool
) -> Iterator[Any]:
    """The entries from `low` on (ns), oldest first, as far as Cloud Logging gives them."""
    from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse

    clauses = ['resource.type="ml_job"', f'resource.labels.job_id="{job}"']
    if low:
        clauses.append(f'timestamp>="{_rfc3339(low)}"')
    request = ListLogEntriesRequest(
        resource_names=[f"projects/{project}"],
        filter=" AND ".join(clauses),
        order_by="timestamp asc",
        page_size=PAGE,
    )
    wait = retry.Retry(
        predicate=retry.if_exception_type(*MAY_PASS),
        initial=0.5,
        maximum=20,
        timeout=patience.busy,
    )
    while True:
        try:
            pager = client.list_log_entries(request, retry=wait, timeout=CALL_S)
        except (exceptions.RetryError, *MAY_PASS):
            if last:
                raise
            return
        page = ListLogEntriesResponse.pb(next(iter(pager.pages)))
        yield from page.entries
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _line(entry: Any, moment: int, now: float) -> Line | None:
    """A replica's line. What the service itself says stands in the job's state already."""
    task = entry.resource.labels.get("task_name", "")
    if not _TASK.fullmatch(task):
        return None
    stream = "e" if entry.severity >= _ERROR else "o"
    return Line(moment, entry.insert_id, now, task, stream, _text(entry))


def _text(entry: Any) -> str:
    if entry.HasField("json_payload"):
        payload = entry.json_payload
        return str(payload["message"]) if "message" in payload else str(dict(payload.items()))
    return str(entry.text_payload)


def _rfc3339(moment: int) -> str:
    whole = datetime.fromtimestamp(moment // NS, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{moment % NS:09d}Z"
