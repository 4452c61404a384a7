"""A Cloud Logging that delivers late, out of order, in pages, and is too busy now and then."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone

import grpc
from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse

METHOD = "google.logging.v2.LoggingServiceV2"
NS = 10**9
START = 1_700_000_000 * NS
_Raw = type(ListLogEntriesResponse.pb(ListLogEntriesResponse()))


class CloudLogging:
    """Entries (`visible`, time, replica, text, id), times in ns; `now` is the reader's present.

    Every `busy`-th call is refused.
    """

    def __init__(self, busy: int = 0) -> None:
        self.now = START
        self.calls = 0
        self.refused = 0
        self._busy = busy
        self._entries: list[tuple[int, str, int, str, int]] = []
        self._lock = threading.Lock()

    def write(self, time: int, replica: int, text: str, late: int = 0) -> None:
        """A line of `workerpool1-REPLICA` that can be read `late` ns after it was written."""
        self._entries.append((time, f"{len(self._entries):08x}", replica, text, time + late))

    def settle(self) -> None:
        """All entries are there: sort them as the service gives them."""
        self._entries.sort()

    def list(self, data: bytes, context: grpc.ServicerContext) -> bytes:
        request = ListLogEntriesRequest.deserialize(data)
        with self._lock:
            self.calls += 1
            refused = self._busy and self.calls % self._busy == 0
            self.refused += bool(refused)
        if refused:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Quota exceeded for read requests")
        written, received = self._since(request.filter)
        page, position = _Raw(), int(request.page_token or 0)
        while position < len(self._entries) and len(page.entries) < request.page_size:
            time, *_, visible = self._entries[position]
            if visible <= self.now and (time >= written or visible >= received):
                self._add(page, self._entries[position])
            position += 1
        page.next_page_token = str(position) if position < len(self._entries) else ""
        return bytes(page.SerializeToString())

    def _since(self, where: str) -> tuple[int, int]:
        """What is asked for, in ns: entries from then on, or received from then on; 0 is all."""
        asked = re.fullmatch(r".* AND \(timestamp>=(\S+) OR receiveTimestamp>=(\S+)\)", where)
        return (_moment(asked[1]), _moment(asked[2])) if asked else (0, 0)

    def _add(self, page: _Raw, entry: tuple[int, str, int, str, int]) -> None:
        time, key, replica, text, visible = entry
        added = page.entries.add(insert_id=key, severity=200)
        added.timestamp.FromNanoseconds(time)
        added.receive_timestamp.FromNanoseconds(visible)
        added.resource.type = "ml_job"
        added.resource.labels["task_name"] = f"workerpool1-{replica}"
        added.json_payload["message"] = text


def _moment(text: str) -> int:
    whole, nanos = text.strip('"Z').split(".")
    seconds = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()
    return int(seconds) * NS + int(nanos)


@contextmanager
def serving(log: CloudLogging) -> Iterator[str]:
    """The address of a gRPC server in front of it."""
    server = grpc.server(ThreadPoolExecutor(2))
    method = grpc.unary_unary_rpc_method_handler(log.list)
    handlers = {"ListLogEntries": method}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(METHOD, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)


def fill(log: CloudLogging, lines: int, replicas: int, seconds: int, chance: random.Random) -> int:
    """That many lines over that time; one in ten is up to 4 s late. Gives the end, in ns."""
    step = seconds * NS // lines
    for number in range(lines):
        late = chance.randrange(4 * NS) if chance.random() < 0.1 else 0
        replica, line = number % replicas, number // replicas
        log.write(START + number * step, replica, f"[rank {replica}] line {line}", late)
    log.settle()
    return START + seconds * NS
