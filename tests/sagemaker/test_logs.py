"""The log of all hosts from CloudWatch Logs, as moto gives it, and the metrics in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from distrain_nb.backends.remote.log_ordering import Lateness
from distrain_nb.backends.remote.service import LogEntry
from distrain_nb.places.sagemaker.client import client
from distrain_nb.places.sagemaker.logs import GROUP, JobLog
from distrain_nb.places.sagemaker.metrics import MetricDefinitions

pytestmark = pytest.mark.brief

AT_ONCE = Lateness(settle=0.0)
BATCH = 5000

_numbers = count()


@pytest.fixture(scope="module")
def logs(aws: Mapping[str, str]) -> Any:
    made = client("logs", "us-east-1", aws)
    made.create_log_group(logGroupName=GROUP)
    return made


@pytest.fixture
def job() -> str:
    return f"job-{next(_numbers)}"


def put(logs: Any, job: str, host: int, lines: list[tuple[int, str]]) -> None:
    """Lines of a host, each with its time in ms."""
    stream = f"{job}/algo-{host}-1700000000"
    found = logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=stream)
    if not found["logStreams"]:
        logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
    for start in range(0, len(lines), BATCH):
        events = [{"timestamp": at, "message": text} for at, text in lines[start : start + BATCH]]
        logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)


def now() -> int:
    return int(time.time() * 1000)


def as_json(cursor: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(cursor))
    return found


def test_many_lines_of_several_hosts_come_once_and_in_order(
    logs: Any, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages, lines of one millisecond, a reader that is replaced in the middle, another job."""
    monkeypatch.setattr("distrain_nb.places.sagemaker.logs.PAGE", 700)
    start, each = now() - 60_000, 1000
    put(logs, f"{job}x", 1, [(start, "another job's")])
    cursor: dict[str, Any] = {}
    entries: list[LogEntry] = []
    for part in range(2):
        for host in (1, 2):
            lines = [
                (start + n // 10, f"{host} {n}") for n in range(part * each, part * each + each)
            ]
            put(logs, job, host, lines)
            found, cursor = JobLog(logs, job, 2).read(cursor, AT_ONCE, last=False)
            entries += found
            cursor = as_json(cursor)
    found, cursor = JobLog(logs, job, 2).read(cursor, AT_ONCE, last=True)
    entries += found
    for host, place in ((1, ("primary", 0)), (2, ("workers", 0))):
        of_host = [e.text for e in entries if (e.role, e.replica) == place]
        assert of_host == [f"{host} {n}" for n in range(2 * each)]
    assert len(entries) == 4 * each
    assert JobLog(logs, job, 2).read(cursor, AT_ONCE, last=True)[0] == []


def test_a_line_that_comes_late_is_put_where_it_belongs(logs: Any, job: str) -> None:
    start = now() - 10_000
    put(logs, job, 1, [(start, "first"), (start + 2000, "third")])
    patient = Lateness(settle=600)
    found, cursor = JobLog(logs, job, 1).read({}, patient, last=False)
    assert found == []
    put(logs, job, 1, [(start + 1000, "second")])
    found, cursor = JobLog(logs, job, 1).read(as_json(cursor), AT_ONCE, last=False)
    assert [entry.text for entry in found] == ["first", "second", "third"]
    put(logs, job, 1, [(start + 1500, "very late")])
    found, _ = JobLog(logs, job, 1).read(as_json(cursor), AT_ONCE, last=False)
    assert [entry.text for entry in found] == ["very late"]


def test_hosts_are_numbered_by_the_order_of_their_names(logs: Any, job: str) -> None:
    for host in (1, 2, 10):
        put(logs, job, host, [(now(), str(host))])
    found, _ = JobLog(logs, job, 10).read({}, AT_ONCE, last=True)
    places = {entry.text: (entry.role, entry.replica) for entry in found}
    assert places == {"1": ("primary", 0), "10": ("workers", 0), "2": ("workers", 1)}


def test_before_the_first_line_there_is_no_log(aws: Mapping[str, str], job: str) -> None:
    elsewhere = client("logs", "eu-west-1", aws)  # where nobody has made the group
    assert JobLog(elsewhere, job, 1).read({}, AT_ONCE, last=True)[0] == []


TOLD = {
    "[1,mpirank:1,algo-2]<stdout>:[rank 1] loss=1": ("[rank 1] loss=1", "o"),
    "[1,mpirank:3,algo-2]<stderr>:no label": ("[rank 3] no label", "e"),
    "[1,2]<stdout>: of mpirun": ("[rank 2] of mpirun", "o"),
    "[1,2] is no label": ("[1,2] is no label", "o"),
}


def test_labels_of_mpirun_become_ranks(logs: Any, job: str) -> None:
    put(logs, job, 1, [(now() - 100 + n, text) for n, text in enumerate(TOLD)])
    found, _ = JobLog(logs, job, 1).read({}, AT_ONCE, last=True)
    assert [(entry.text, entry.stream) for entry in found] == list(TOLD.values())


@pytest.fixture
def busy(aws: Mapping[str, str]) -> Iterator[tuple[Any, list[str]]]:
    """A client that is told so often as the list has members that it asks too often."""
    left: list[str] = []

    def refuse(request: Any, **_: Any) -> AWSResponse | None:
        if not left:
            return None
        body = json.dumps({"__type": left.pop(), "message": "Rate exceeded"}).encode()
        return Refusal(request.url, 400, {}, body)

    import boto3

    made = boto3.client(
        "logs", region_name="us-east-1", endpoint_url=aws["logs"], aws_access_key_id="a",
        aws_secret_access_key="b", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip
    made.meta.events.register("before-send.cloudwatch-logs", refuse)
    yield made, left


class Refusal(AWSResponse):
    """An answer that is there already."""

    def __init__(self, url: str, status: int, headers: dict[str, str], body: bytes) -> None:
        super().__init__(url, status, headers, None)
        self._content = body


def test_a_busy_service_costs_no_line(logs: Any, job: str, busy: tuple[Any, list[str]]) -> None:
    put(logs, job, 1, [(now() - 1000, "one"), (now() - 500, "two")])
    asked, left = busy
    left.append("ThrottlingException")
    found, cursor = JobLog(asked, job, 1).read({}, AT_ONCE, last=False)
    assert found == []
    found, cursor = JobLog(asked, job, 1).read(cursor, AT_ONCE, last=False)
    assert [entry.text for entry in found] == ["one", "two"]
    left.append("ThrottlingException")
    with pytest.raises(ClientError):  # nobody would ask again
        JobLog(asked, job, 1).read(cursor, AT_ONCE, last=True)


LINES = (
    ("primary", "[rank 0] step 0 loss=1.5 accuracy=0.1"),
    ("workers", "[rank 1] step 0 loss=9 accuracy=0.9"),
    ("workers", "loss=8"),
    ("primary", "loss=0.5"),
    ("primary", "[rank 0] loss=."),
    ("primary", "[rank 0] accuracy=0.2"),
)


def test_metrics_are_read_from_the_lines_of_rank_0() -> None:
    definitions = [
        {"Name": "loss", "Regex": "loss=([0-9.]+)"},
        {"Name": "accuracy", "Regex": "accuracy=([0-9.]+)"},
    ]
    entries = [LogEntry(0.0, role, 0, text) for role, text in LINES]
    cursor: dict[str, Any] = {}
    points: list[Any] = []
    for entry in entries:  # one at a time: steps go on where they were
        (told,), cursor = MetricDefinitions.of(definitions).read([entry], cursor, {"low": 1})
        points += told.points
        cursor = as_json(cursor)
    assert points == [
        ("loss", 0, 1.5),
        ("accuracy", 0, 0.1),
        ("loss", 1, 0.5),
        ("accuracy", 1, 0.2),
    ]
    assert cursor == {"low": 1, "metrics": {"loss": 2, "accuracy": 2}}
    assert MetricDefinitions.of(()).read(entries, {}, {"low": 1}) == (entries, {"low": 1})
