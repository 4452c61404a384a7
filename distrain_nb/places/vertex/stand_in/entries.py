"""Cloud Logging as far as it keeps the lines of custom jobs."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from google.cloud.logging_v2.types import ListLogEntriesResponse, LogEntry

from distrain_nb.places.vertex.stand_in.refusals import invalid, quota_exceeded
from distrain_nb.rehearsal.failures import ApiError
from distrain_nb.rehearsal.paging import page_at

if TYPE_CHECKING:
    from google.cloud.logging_v2.types import ListLogEntriesRequest

    from distrain_nb.rehearsal.faults import Faults

SERVICE = "service"

_BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MAX_PAGE, _PAGE = 1000, 50
_ORDERS = ("", "timestamp asc", "timestamp desc")
_CLAUSE = re.compile(
    r"""\s*(?P<field>[\w."/-]+?)\s*(?P<sign>>=|<=|!=|=|>|<|:)\s*(?P<value>"[^"]*"|[^\s()]+)\s*"""
)
_ALTERNATIVES = re.compile(r"\s*\(([^()]*)\)\s*")
_TRIAL = "ml.googleapis.com/trial_id"
_LEVELS = {"o": "INFO", "e": "ERROR"}


@dataclass(frozen=True)
class StoredEntry:
    """An entry, when it was written, and when it is received, so that it can be read: seconds."""

    time: float
    received: float
    fields: dict[str, str]
    entry: LogEntry


class Entries:
    """Every entry of every job, and the trouble in reading them."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._stored: list[StoredEntry] = []
        self._calls = 0
        self._last = 0
        self._trials: dict[str, str] = {}
        self._lock = threading.Lock()

    def label(self, job: str, trial: str) -> None:
        """Label the log entries of a job with a trial."""
        self._trials[job] = trial

    def write(self, job: str, task: str, text: str, stream: str = "o") -> None:
        """Keep a line of a replica, or of the service itself (`task` is `service`)."""
        _, project, _, _, _, number = job.split("/")
        fields = {
            "resource.type": "ml_job",
            "resource.labels.project_id": project,
            "resource.labels.job_id": number,
            "resource.labels.task_name": task,
            f"labels.{_TRIAL}": self._trials.get(job, ""),
            "severity": _LEVELS[stream],
            "logName": f"projects/{project}/logs/{task}",
        }
        with self._lock:
            # no two in the same microsecond, so that the times alone give the order
            self._last = max(time.time_ns() // 1000, self._last + 1)
            when = self._last / 1e6
            received = self._last + round(1e6 * self._faults.delay(len(self._stored)))
            entry = _entry(self._last, received, fields, text)
            self._stored.append(StoredEntry(when, received / 1e6, fields, entry))

    def list(self, request: ListLogEntriesRequest) -> ListLogEntriesResponse:
        """Return a page of what the filter lets through. Raises ApiError as the service does."""
        with self._lock:
            self._calls += 1
            if self._faults.busy and self._calls % self._faults.busy == 0:
                raise quota_exceeded(
                    "logging.googleapis.com/read_requests", "Read requests per minute"
                )
            stored = list(self._stored)
        if request.order_by not in _ORDERS:
            raise invalid(f"order_by {request.order_by!r} is not one of {_ORDERS[1:]}")
        passes, now = _filter(request.filter), time.time()
        matching = [
            entry_stored
            for entry_stored in stored
            if entry_stored.received <= now and passes(entry_stored)
        ]
        matching.sort(key=lambda stored: (stored.time, stored.entry.insert_id))
        if request.order_by.endswith("desc"):
            matching.reverse()
        size = min(request.page_size or _PAGE, _MAX_PAGE)
        entries, token = page_at([stored.entry for stored in matching], request.page_token, size)
        return ListLogEntriesResponse(entries=entries, next_page_token=token)


def _entry(micros: int, received: int, fields: Mapping[str, str], text: str) -> LogEntry:
    labels = {
        name: fields[f"resource.labels.{name}"] for name in ("project_id", "job_id", "task_name")
    }
    return LogEntry(
        log_name=fields["logName"],
        resource={"type": fields["resource.type"], "labels": labels},
        json_payload={"message": text, "levelname": fields["severity"]},
        timestamp=_BEGINNING + timedelta(microseconds=micros),
        receive_timestamp=_BEGINNING + timedelta(microseconds=received),
        insert_id=f"{micros:x}{uuid.uuid4().hex[:6]}",
        severity=fields["severity"],
        labels={
            "ml.googleapis.com/job_id/log_area": "root",
            "ml.googleapis.com/endpoint": "",
            _TRIAL: fields[f"labels.{_TRIAL}"],
        },
    )


def _filter(text: str) -> Callable[[StoredEntry], bool]:
    """Return the part of the query language that asks for a job's entries: comparisons joined by
    AND, or by OR in parentheses."""
    parts = filter(str.strip, re.split(r"\s+AND\s+|\n", text))
    clauses = [[_comparison(alternative) for alternative in _alternatives(part)] for part in parts]
    return lambda stored: all(
        any(_holds(stored, *condition) for condition in clause) for clause in clauses
    )


def _alternatives(part: str) -> list[str]:
    match = _ALTERNATIVES.fullmatch(part)
    return re.split(r"\s+OR\s+", match[1]) if match else [part]


def _comparison(part: str) -> tuple[str, str, str]:
    match = _CLAUSE.fullmatch(part)
    if match is None:
        raise invalid(f"Unparseable filter: {part!r}")
    return match["field"].replace('"', ""), match["sign"], match["value"].strip('"')


def _holds(stored: StoredEntry, field: str, sign: str, value: str) -> bool:
    if field in ("timestamp", "receiveTimestamp"):
        return _compare(
            stored.time if field == "timestamp" else stored.received, sign, _seconds(value)
        )
    if field not in stored.fields:
        raise ApiError("INVALID_ARGUMENT", f"Field not found: {field!r}.")
    return _compare(stored.fields[field], sign, value)


def _compare(has: float | str, sign: str, operand: float | str) -> bool:
    answers = {
        "=": has == operand,
        "!=": has != operand,
        ":": str(operand) in str(has),
        ">=": has >= operand,  # type: ignore[operator]
        "<=": has <= operand,  # type: ignore[operator]
        ">": has > operand,  # type: ignore[operator]
        "<": has < operand,  # type: ignore[operator]
    }
    return answers[sign]


def _seconds(text: str) -> float:
    # Python 3.10 reads neither Z nor other than six digits of a second
    date_and_time, _, rest = text.replace("Z", "+00:00").partition(".")
    if rest:
        digits, sign, zone = re.fullmatch(r"(\d+)([+-]?)(.*)", rest).groups()  # type: ignore[union-attr]
        date_and_time = f"{date_and_time}.{digits[:6]:0<6}{sign}{zone}"
    try:
        return datetime.fromisoformat(date_and_time).timestamp()
    except ValueError:
        raise invalid(f"{text!r} is not a timestamp") from None
