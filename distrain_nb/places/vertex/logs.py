"""The lines of all replicas from Cloud Logging, each once and in order.

Entries arrive late, out of order and more than once, and Cloud Logging can only be asked for spans
of time, written or received; an entry's `insert_id` tells whether it was there before.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from google.api_core import exceptions, retry

from distrain_nb.backends.remote import log_ordering
from distrain_nb.backends.remote.log_ordering import NS, HeldLine, Lateness
from distrain_nb.backends.remote.service import LogEntry
from distrain_nb.places.vertex.client import CALL_S, MAY_PASS
from distrain_nb.places.vertex.jobs import readable
from distrain_nb.types import Value

if TYPE_CHECKING:
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

    from distrain_nb.backends.remote.service import Cursor

PAGE = 1000
BUSY_S = 20.0  # how long Cloud Logging may be too busy before a call ends with what it has

_ROLES = ("primary", "workers", "servers", "evaluators")
_TASK = re.compile(r"workerpool([0-3])-(\d+)")
_SERVICE = "service"  # the task under which Vertex AI itself speaks
_RESOURCE = 'resource.type="ml_job"'
_JOB, _TRIAL = "resource.labels.job_id", 'labels."ml.googleapis.com/trial_id"'
_ERROR = 500  # the severity that stderr gets


def read(
    client: LoggingServiceV2Client,
    project: str,
    job: str,
    cursor: Cursor,
    lateness: Lateness,
    *,
    last: bool,
    trial_of: tuple[str, str] | None = None,
) -> tuple[list[LogEntry], Cursor]:
    """Return the lines that have settled since the cursor, and the cursor after them.

    `job` is the custom job's number; that of a trial is `trial_of` a tuning job's number and its
    own, as which lines may be kept too. `last` gives all lines that there are. Being too busy is
    waited for; if that takes too long, the lines so far are given, or with `last` the error is
    raised, since nobody would ask again.
    """
    now = time.time()
    entries = _entries(client, project, _of(job, trial_of), cursor, last=last)
    lines = filter(None, (_line(entry, now) for entry in entries))
    settled, after = log_ordering.settle(lines, cursor, now, lateness, last=last)
    return [_entry(line) for line in settled], after


def _entry(line: HeldLine) -> LogEntry:
    match = _TASK.fullmatch(line.source)
    role, replica = (_ROLES[int(match[1])], int(match[2])) if match else (_SERVICE, 0)
    return LogEntry(line.time / NS, role, replica, line.text, line.stream)


def _of(job: str, trial_of: tuple[str, str] | None) -> list[str]:
    """Return the filter for entries of a job, or of a trial."""
    condition = f'{_JOB}="{job}"'
    if trial_of is None:
        return [_RESOURCE, condition]
    tuning, trial = trial_of
    return [
        _RESOURCE,
        f'({condition} OR {_JOB}="{tuning}")',
        f'({condition} OR {_TRIAL}="{trial}")',
    ]


def _entries(
    client: LoggingServiceV2Client,
    project: str,
    conditions: Sequence[str],
    cursor: Cursor,
    *,
    last: bool,
) -> Iterator[Value]:
    """Yield the entries since the cursor, oldest first, as far as Cloud Logging gives them."""
    from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse

    clauses = list(conditions)
    spans = {
        "timestamp": log_ordering.since(cursor),
        "receiveTimestamp": log_ordering.received_since(cursor),
    }
    if all(spans.values()):
        asked = " OR ".join(f'{field}>="{_rfc3339(low)}"' for field, low in spans.items())
        clauses.append(f"({asked})")
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
        timeout=BUSY_S,
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


def _line(entry: Value, now: float) -> HeldLine | None:
    """Return a line of a replica, or of the service about the job."""
    task = entry.resource.labels.get("task_name", "")
    if task != _SERVICE and not _TASK.fullmatch(task):
        return None
    text = readable(_text(entry)) if task == _SERVICE else _text(entry)
    stream = "e" if entry.severity >= _ERROR else "o"
    written, received = entry.timestamp.ToNanoseconds(), entry.receive_timestamp.ToNanoseconds()
    return HeldLine(written, entry.insert_id, now, task, text, stream, received)


def _text(entry: Value) -> str:
    if entry.HasField("json_payload"):
        payload = entry.json_payload
        return str(payload["message"]) if "message" in payload else str(dict(payload.items()))
    return str(entry.text_payload)


def _rfc3339(moment: int) -> str:
    seconds = datetime.fromtimestamp(moment // NS, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{seconds}.{moment % NS:09d}Z"
