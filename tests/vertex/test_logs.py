"""Every line once and in order, whatever Cloud Logging does."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import defaultdict
from typing import Any

import pytest
from google.api_core import exceptions
from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.backends.remote.log_ordering import Lateness
from distrain_nb.backends.remote.service import LogEntry
from distrain_nb.places.vertex import logs
from distrain_nb.places.vertex.client import logging_client
from distrain_nb.places.vertex.logs import read
from tests.fuzzing import several
from tests.vertex.cloud_logging import NS, START, CloudLogging, fill, serving

# The reader's own clock plays no part: only how far the service has come.
LATENESS = Lateness(settle=5.0, late=10.0)

ANOTHER_PROCESS = """
import json, sys
from distrain_nb.places.vertex.client import logging_client
from distrain_nb.backends.remote.log_ordering import Lateness
from distrain_nb.places.vertex.logs import read
address, cursor = sys.argv[1], json.load(sys.stdin)
lateness = Lateness(settle=5.0, late=10.0)
client = logging_client({"logging": address})
entries, cursor = read(client, "p", "1", cursor, lateness, last=False)
print(json.dumps([[[e.time, e.role, e.replica, e.text, e.stream] for e in entries], cursor]))
"""


def by_replica(entries: list[LogEntry]) -> dict[int, list[str]]:
    found = defaultdict(list)
    for entry in entries:
        found[entry.replica].append(entry.text)
    return found


def in_another_process(
    address: str, cursor: dict[str, Any]
) -> tuple[list[LogEntry], dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_PROCESS, address],
        input=json.dumps(cursor), capture_output=True, text=True, check=True,
    )  # fmt: skip
    entries, after = json.loads(done.stdout)
    return [LogEntry(*entry) for entry in entries], after


@pytest.mark.slow
def test_40_000_lines_of_4_replicas_under_trouble() -> None:
    log = CloudLogging(busy=8)
    end = fill(log, lines=40_000, replicas=4, seconds=400, chance=random.Random(6))
    got: list[LogEntry] = []
    cursor: dict[str, Any] = {}
    with serving(log) as address:
        client = logging_client({"logging": address})
        while log.now < end + 5 * NS:
            log.now += 20 * NS
            if log.now == START + 200 * NS:
                entries, cursor = in_another_process(address, cursor)
            else:
                entries, cursor = read(client, "p", "1", cursor, LATENESS, last=False)
                cursor = json.loads(json.dumps(cursor))
            got += entries
            assert len(cursor["seen"]) <= 100 * 36  # what may still come again, and no more
        entries, _ = read(client, "p", "1", cursor, LATENESS, last=True)
    assert log.refused > 5
    expected = {n: [f"[rank {n}] line {i}" for i in range(10_000)] for n in range(4)}
    assert by_replica([*got, *entries]) == expected


@settings(max_examples=several(25), deadline=None)
@given(
    delays=st.lists(st.integers(0, 4 * NS), min_size=1, max_size=60),
    step=st.integers(0, 2 * NS),
    looks=st.lists(st.integers(1, 15 * NS), min_size=1, max_size=12),
)
def test_any_delays_and_any_moments_of_looking(
    delays: list[int], step: int, looks: list[int]
) -> None:
    log = CloudLogging()
    for number, late in enumerate(delays):
        log.write(START + number * step, number % 3, str(number), late)
    log.settle()
    got: list[LogEntry] = []
    cursor: dict[str, Any] = {}
    with serving(log) as address:
        client = logging_client({"logging": address})
        for more in looks:
            log.now += more
            entries, cursor = read(client, "p", "1", cursor, LATENESS, last=False)
            got += entries
        log.now += 1000 * NS
        for last in (False, True):
            entries, cursor = read(client, "p", "1", cursor, LATENESS, last=last)
            got += entries
    texts = by_replica(got)
    assert sorted(int(text) for each in texts.values() for text in each) == list(range(len(delays)))
    for each in texts.values():
        assert each == sorted(each, key=int)


def test_a_line_that_comes_an_hour_late_is_given_late_and_once() -> None:
    log = CloudLogging()
    for second in range(4000):
        late = 3600 * NS if second == 7 else 0
        log.write(START + second * NS, second % 2, str(second), late)
    log.settle()
    got: list[LogEntry] = []
    cursor: dict[str, Any] = {}
    with serving(log) as address:
        client = logging_client({"logging": address})
        for _ in range(41):
            log.now += 100 * NS
            entries, cursor = read(client, "p", "1", cursor, LATENESS, last=False)
            got += entries
            assert len(cursor["seen"]) <= 250
        entries, _ = read(client, "p", "1", cursor, LATENESS, last=True)
    texts = [int(entry.text) for entry in [*got, *entries]]
    place = texts.index(7)
    assert texts[place - 1] > 3500
    assert [*texts[:place], *texts[place + 1 :]] == [n for n in range(4000) if n != 7]


def test_too_busy_for_long_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "BUSY_S", 0.3)
    log = CloudLogging(busy=1)
    log.write(START, 0, "one")
    log.now += NS
    hasty = Lateness(settle=0.0)
    with serving(log) as address:
        client = logging_client({"logging": address})
        entries, cursor = read(client, "p", "1", {}, hasty, last=False)
        assert not entries
        with pytest.raises((exceptions.RetryError, exceptions.ResourceExhausted)):
            read(client, "p", "1", cursor, hasty, last=True)
        log._busy = 0
        entries, _ = read(client, "p", "1", cursor, hasty, last=True)
    assert [(e.text, e.role, e.replica, e.time) for e in entries] == [
        ("one", "workers", 0, START / NS)
    ]


def test_a_quiet_job_s_last_line_comes_without_another_one_after_it() -> None:
    log = CloudLogging()
    log.write(START, 0, "alone")
    log.now += NS
    lateness = Lateness(settle=0.2)
    with serving(log) as address:
        client = logging_client({"logging": address})
        first, cursor = read(client, "p", "1", {}, lateness, last=False)
        cursor["held"][0][2] -= 1.0  # got a second ago
        second, cursor = read(client, "p", "1", cursor, lateness, last=False)
        third, _ = read(client, "p", "1", cursor, lateness, last=False)
    assert [len(first), len(second), len(third)] == [0, 1, 0]
