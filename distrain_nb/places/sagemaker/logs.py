"""The lines of all hosts from CloudWatch Logs, each once and in order."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from distrain_nb.backends.remote.log_ordering import NS, HeldLine, Lateness, settle, since
from distrain_nb.backends.remote.service import LogEntry
from distrain_nb.places.sagemaker.client import THROTTLED, code_of

if TYPE_CHECKING:
    from botocore.client import BaseClient

    from distrain_nb.backends.remote.service import Cursor

GROUP = "/aws/sagemaker/TrainingJobs"
MS = 10**6  # ns
PAGE = 10_000  # the most that the service gives

_ID_DIGITS = 56

_HOST = re.compile(r"/algo-(\d+)-")
_SERVICE = "service"
_NOT_YET = "ResourceNotFoundException"

# What mpirun and AWS's toolkit put before a line of a rank.
_OF_MPIRUN = re.compile(r"\[\d+,(?:mpirank:)?(\d+)(?:,[\w-]+)?\]<std(out|err)>:? ?(.*)", re.DOTALL)


@dataclass(frozen=True)
class JobLog:
    """The log of a job with this number of hosts; `client` is CloudWatch Logs'."""

    client: BaseClient
    job: str
    hosts: int

    def read(
        self, cursor: Cursor, lateness: Lateness, *, last: bool
    ) -> tuple[list[LogEntry], Cursor]:
        """Return the lines that have settled since the cursor, and the new cursor.

        With `last`, return all lines that there are. If CloudWatch stays too busy, return the lines
        so far. With `last`, raise the error instead, since nobody would ask again.
        """
        low = since(cursor)
        lines = list(self._lines(low // MS, last=last))
        settled, after = settle(lines, cursor, time.time(), lateness, last=last)
        return [self._entry(line) for line in settled], after

    def _lines(self, start: int, *, last: bool) -> Iterator[HeldLine]:
        """Yield the lines of all hosts from `start` (ms) on."""
        asked = {
            "logGroupName": GROUP,
            "logStreamNamePrefix": f"{self.job}/",
            "startTime": start,
            "PaginationConfig": {"PageSize": PAGE},
        }
        now = time.time()
        pages = iter(self.client.get_paginator("filter_log_events").paginate(**asked))
        while True:
            try:
                page = next(pages, None)
            except ClientError as error:
                if code_of(error) == _NOT_YET or (code_of(error) in THROTTLED and not last):
                    return
                raise
            if page is None:
                return
            for event in page["events"]:
                if event["logStreamName"].startswith(f"{self.job}/"):
                    source, text = event["logStreamName"], event["message"]
                    number = event["eventId"].zfill(_ID_DIGITS)
                    yield HeldLine(event["timestamp"] * MS, number, now, source, text)

    def _entry(self, line: HeldLine) -> LogEntry:
        role, replica = self._replica(line.source)
        match = _OF_MPIRUN.fullmatch(line.text)
        if match is None:
            return LogEntry(line.time / NS, role, replica, line.text)
        text = match[3] if match[3].startswith("[rank ") else f"[rank {match[1]}] {match[3]}"
        return LogEntry(line.time / NS, role, replica, text, "e" if match[2] == "err" else "o")

    def _replica(self, stream: str) -> tuple[str, int]:
        """Return the pool and the number of a host, as the worker gives them: by the order of
        names.

        Of other streams, such as a rehearsal's own, the service's."""
        match = _HOST.search(stream)
        if match is None:
            return _SERVICE, 0
        names = sorted(f"algo-{number}" for number in range(1, self.hosts + 1))
        name = f"algo-{match[1]}"
        place = names.index(name) if name in names else 0
        return ("workers", place - 1) if place else ("primary", 0)
