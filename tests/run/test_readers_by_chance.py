"""Files of a run's folder as chance leaves them: a row of the list, or a sentence."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from distrain_nb.backends.remote.links import read_links, write_links
from distrain_nb.backends.remote.submission import Journal, Submission
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.run import Run, Store
from distrain_nb.run.metrics.finite import to_json
from distrain_nb.run.pages.answers import _ANSWERS as ANSWERS
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.pages.listing import Listing
from distrain_nb.worker.files import failure
from distrain_nb.worker.files.failure import Failure
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.status import Process, Progress, State, Status
from distrain_nb.worker.rank.program import SOURCE_MAP, Segment, read_source_map, source_map
from tests.fuzzing import flipped, mutated, rounds

if TYPE_CHECKING:
    from pathlib import Path

PIECES = [
    *(b"null", b"[]", b"{}", b"-1", b"1e999", b"NaN", b'"x"', b"9" * 40, b"true", b'""', b"\xff"),
    *(b'"\\ud800"', b'"a\\u0000b"'),
]
CRUEL = [
    *(b"", b"null", b"[]", b"{}", b"[" * 100_000, b'{"state":' * 20_000, b"\xff\xfe"),
    *(b"9" * 9_000, b'"failed"', b"\0" * 512),
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path))
    made = Store().add("", "local", "", "")
    progress = Progress("sending", 1, 2, 3.0)
    ranks = (Process(0, "rank 0", "primary", 0, 0), Process(1, "rank 1", "workers", 0, 1))
    times = {"starting": 1.0, "running": time.time()}
    Status(State.RUNNING, "running", times, "", "", None, ranks, progress).write(made.folder)
    return Run(made)


def listed(run: Run) -> list[str]:
    return [to_json(each.as_json()) for each in Listing().read([run])]


def test_a_status_by_chance_is_a_row(run: Run) -> None:
    file = run.folder / "status.json"
    whole = file.read_bytes()
    for number, chance in enumerate(rounds(31, 2_500)):
        made = CRUEL[number] if number < len(CRUEL) else mutated(chance, [whole], PIECES)
        file.write_bytes(made if chance.random() < 0.7 or not made else flipped(chance, made))
        assert len(listed(run)) == 1
        with contextlib.suppress(DistrainError):
            to_json(answer(run, "summary", {}))


def test_what_a_carrier_reads_by_chance_raises_only_that_it_is_damaged(tmp_path: Path) -> None:
    Submission("vertex", {"a": 1}, (Process(0, "rank 0", "primary", 0, 0),)).write(tmp_path)
    Journal({"a": 1}, 1.5, "job", {"b": 2}, 3, 4, ["rank 0"]).write(tmp_path)
    write_links({"job": "https://x"}, tmp_path)
    files = [tmp_path / name for name in ("submission.json", "carrier.json", "links.json")]
    whole = [file.read_bytes() for file in files]
    for number, chance in enumerate(rounds(32, 2_000)):
        for file, data in zip(files, whole, strict=True):
            odd = CRUEL[number] if number < len(CRUEL) else mutated(chance, [data], PIECES)
            file.write_bytes(odd)
        for read in (Submission.read, Journal.read, read_links):
            with contextlib.suppress(Damaged):
                read(tmp_path)


def test_reports_and_source_maps_by_chance(tmp_path: Path) -> None:
    Failure(0, 1.0, "ValueError: x", "Traceback\n", "rank 0").write(tmp_path)
    (report,) = tmp_path.glob("failure-*.json")
    segments = source_map([Segment(1, 3, "Cell In[1]", 1, True)])
    seeds = [report.read_bytes(), segments.encode()]
    for number, chance in enumerate(rounds(33, 2_000)):
        odd = CRUEL[number] if number < len(CRUEL) else mutated(chance, seeds, PIECES)
        report.write_bytes(odd)
        (tmp_path / SOURCE_MAP).write_bytes(odd)
        found = failure.read(tmp_path, 0)
        assert found is None or isinstance(found.summary, str)
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            read_source_map(tmp_path)


NAMES = [
    *("first", "count", "after", "limit", "process", "role", "stream", "text", "regex", "case"),
    *("seen", "from", "to", "points", "smoothing", "drawn", "run", "tag", "kind", "at", "x"),
]
VALUES = [
    "1",
    "-1",
    "0,1",
    "rank",
    "primary,workers",
    "o",
    "(a+)+$",
    "[",
    "loss",
    "histogram",
    "0.5",
]
ODD = ["", "9" * 5000, "1e999", "nan", "\0", "½", "١", "\ud800", "..", "_", " ", "+", ","]


def test_what_a_page_asks_by_chance_is_answered_or_refused(run: Run) -> None:
    (run.folder / "log.tsv").write_text("".join(f"{n}.5\t0\to\trank {n}\n" for n in range(9)))
    refused = 0
    for chance in rounds(36, 2_000):
        query = {
            name: mutated(chance, VALUES, ODD) if chance.random() < 0.7 else chance.choice(VALUES)
            for name in chance.sample(NAMES, chance.randrange(1, 6))
        }
        try:
            to_json(answer(run, chance.choice([*ANSWERS, "..", ""]), query))
        except OptionError:
            refused += 1
    assert refused
