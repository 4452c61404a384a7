"""The lines of every host on their way to CloudWatch Logs."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from distrain_nb.places.sagemaker.stand_in.store import client

if TYPE_CHECKING:
    from distrain_nb.rehearsal.faults import Faults

GROUP = "/aws/sagemaker/TrainingJobs"

_SEND_EVERY_S = 0.25
_BATCH = 1000
_MAX_BYTES = 256 * 1024 - 26


@dataclass(frozen=True)
class LogStream:
    """A stream of the group in a region."""

    region: str
    name: str


@dataclass(frozen=True)
class _Event:
    stream: LogStream
    time: int  # in ms since the epoch
    due: float  # on the monotonic clock
    text: str


class LogStreams:
    """Sends lines in batches, those that are to be late after the others."""

    def __init__(self, endpoint: str, faults: Faults) -> None:
        self._endpoint = endpoint
        self._faults = faults
        self._count = 0
        self._lines: list[_Event] = []
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log streams", daemon=True)
        self._thread.start()

    def open(self, region: str, name: str) -> LogStream:
        """Have a stream of that name."""
        with self._sending:
            if region not in self._clients:
                self._clients[region] = client("logs", self._endpoint, region)
                self._clients[region].create_log_group(logGroupName=GROUP)
            self._clients[region].create_log_stream(logGroupName=GROUP, logStreamName=name)
        return LogStream(region, name)

    def write(self, stream: LogStream, text: str) -> None:
        """Keep a line; CloudWatch takes none that is empty."""
        if not text:
            return
        cut = text.encode()[:_MAX_BYTES].decode("utf-8", "ignore")
        with self._lock:
            due = time.monotonic() + self._faults.delay(self._count)
            self._lines.append(_Event(stream, round(time.time() * 1000), due, cut))
            self._count += 1

    def send(self) -> None:
        """Send what is due."""
        with self._sending:
            now = time.monotonic()
            with self._lock:
                due = [line for line in self._lines if line.due <= now]
                self._lines = [line for line in self._lines if line.due > now]
            due.sort(key=lambda line: line.stream.name)  # stable: in order within each stream
            for stream, group in groupby(due, key=lambda line: line.stream):
                self._put(stream, list(group))

    def _put(self, stream: LogStream, lines: list[_Event]) -> None:
        for start in range(0, len(lines), _BATCH):
            events = [
                {"timestamp": line.time, "message": line.text}
                for line in lines[start : start + _BATCH]
            ]
            self._clients[stream.region].put_log_events(
                logGroupName=GROUP, logStreamName=stream.name, logEvents=events
            )

    def _run(self) -> None:
        while not self._closed.wait(_SEND_EVERY_S):
            self.send()

    def close(self) -> None:
        """Stop sending."""
        self._closed.set()
        self._thread.join()
