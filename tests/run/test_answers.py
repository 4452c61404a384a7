"""What a page is answered, by the server and by the kernel alike."""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distrain_nb.errors import OptionError
from distrain_nb.run import Run, Store
from distrain_nb.run.pages.answers import answer
from distrain_nb.worker.files.status import Process, State, Status
from distrain_nb.worker.metrics import event_format, writer
from tests.run.logs import Printing

Ask = Callable[..., dict[str, Any]]

TRACEBACK = """\
Traceback (most recent call last):
  File "cell 3", line 2, in train
    model(x)
ValueError: shapes differ
"""


@pytest.fixture
def run(home: Path) -> Run:
    """Two workers and a server, that run."""
    store = Store()
    record = store.add("", "local", "", "")
    processes = (
        Process(0, "rank 0", "primary", 0, 0),
        Process(3, "rank 1", "workers", 0, 1),
        Process(12, "server 0", "servers", 0),
    )
    times = {"running": time.time()}
    Status(State.RUNNING, times=times, processes=processes).write(record.folder)
    return Run(record)


@pytest.fixture
def ask(run: Run) -> Ask:
    """The answer as it comes out at the other end of a wire."""

    def ask(path: str, **query: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(json.dumps(answer(run, path, query), allow_nan=False))
        return said

    return ask


@pytest.fixture
def log(run: Run) -> Printing:
    return Printing(run.folder)


def texts(said: dict[str, Any]) -> list[str]:
    return [line[-1] for line in said["lines"]]


def test_before_anything_is_printed(ask: Ask) -> None:
    assert ask("log", first="-5") == {
        "total": 0, "rows": 0, "first": 0, "end": False, "lines": [], "bars": [],
    }  # fmt: skip
    assert ask("search", text="x") == {
        "total": 0, "searched": 1.0, "done": True, "row": None, "place": -1,
    }  # fmt: skip
    assert ask("first-error") == {"row": None}
    assert ask("tracebacks") == {"folds": []}
    assert ask("metrics") == ask("resources") == {"lines": [], "notes": []}


def test_windows_count_rows_that_pass(ask: Ask, log: Printing) -> None:
    for number in range(10):
        log.print(f"{number}\n", (0, 3)[number % 2])
    log.print("50%\r", 12)
    said = ask("log", first="2", count="3")
    assert (said["total"], said["rows"], said["first"]) == (10, 10, 2)
    assert texts(said) == ["2", "3", "4"]
    odd = ask("log", role="workers", first="-2")
    assert (odd["total"], odd["rows"], odd["first"]) == (10, 5, 3)
    assert [(line[0], line[2], line[3], line[4]) for line in odd["lines"]] == [
        (7, 3, "o", False),
        (9, 3, "o", False),
    ]
    assert [bar[-1] for bar in said["bars"]] == ["50%"]
    assert odd["bars"] == []
    assert texts(ask("log", process="0,12", role="primary,servers")) == ["0", "2", "4", "6", "8"]
    assert texts(ask("log", process="0", role="workers")) == []
    assert ask("log", first="99")["first"] == 10


def test_the_end_is_told_when_all_is_there(ask: Ask, run: Run) -> None:
    assert not ask("log")["end"]
    run.status.enter(State.SUCCEEDED).write(run.folder)
    assert ask("log")["end"]
    assert ask("summary")["final"]
    assert ask("summary")["now"] >= run.created


def test_a_long_line_is_cut(ask: Ask, log: Printing) -> None:
    log.print("x" * 25_000 + "\n")
    (text,) = texts(ask("log"))
    assert text == "x" * 20_000 + "… (5,000 characters more)"


def test_the_first_traceback_comes_before_any_error(ask: Ask, log: Printing) -> None:
    log.print("no ERRORs, no TERROR\n")
    assert ask("first-error") == {"row": None}
    log.print("ERROR: disk is slow\n", 3)
    assert ask("first-error") == {"row": 1}
    log.print(TRACEBACK, 0, "e")
    assert ask("first-error") == {"row": 2}
    assert ask("first-error", stream="e") == {"row": 0}
    assert ask("first-error", process="3") == {"row": 0}
    assert ask("first-error", process="12") == {"row": None}


def test_tracebacks_are_folded_to_the_exception(ask: Ask, log: Printing) -> None:
    log.print("before\n")
    log.print(TRACEBACK, 0, "e")
    log.print("\nDuring handling of the above exception, another exception occurred:\n\n", 0, "e")
    log.print(TRACEBACK, 0, "e")
    log.print("after\n")
    folds = [[1, 4], [8, 11]]
    assert ask("tracebacks") == {"folds": folds}
    assert ask("tracebacks", first="3", count="2") == {"folds": folds[:1]}
    assert ask("tracebacks", first="9", count="1") == {"folds": folds[1:]}
    assert ask("tracebacks", first="5", count="3") == {"folds": []}
    assert ask("tracebacks", stream="e") == {"folds": [[0, 3], [7, 10]]}


def test_lines_of_others_are_never_folded_away(ask: Ask, log: Printing) -> None:
    head, *rest = TRACEBACK.splitlines(keepends=True)
    log.print(head + rest[0], 0, "e")
    log.print("elsewhere\n", 3)
    log.print("".join(rest[1:]), 0, "e")
    assert ask("tracebacks") == {"folds": [[0, 1]]}
    assert ask("tracebacks", process="0") == {"folds": [[0, 3]]}


def test_a_group_of_exceptions_is_folded_whole(ask: Ask, log: Printing) -> None:
    lines = [
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "x.py", line 1, in f',
        "  | ExceptionGroup: two (2 sub-exceptions)",
        "  +-+---------------- 1 ----------------",
        "after",
    ]
    log.print("\n".join(lines) + "\n", 0, "e")
    assert ask("tracebacks") == {"folds": [[0, 3]]}


@pytest.mark.parametrize(
    ("path", "below"), [("metrics", "tensorboard"), ("resources", "resources")]
)
def test_scalars(ask: Ask, run: Run, path: str, below: str) -> None:
    (run.folder / below).mkdir()
    events = writer._EventFile(run.folder / below / "train")
    for step in range(5_000):
        value = math.nan if step == 4_999 else float(step == 777)
        events.write(event_format.event(time.time(), step, {"loss": value, "lr": 0.5}))
    loss, lr = ask(path, points="100")["lines"]
    assert (loss["run"], loss["tag"], lr["tag"]) == ("train", "loss", "lr")
    assert len(loss["step"]) == len(loss["wall_time"]) == len(loss["value"]) == 100
    assert 777 in loss["step"]
    assert loss["value"][-1] is None
    (near,) = ask(path, points="100", tag="loss", **{"from": "770", "to": "779"})["lines"]
    assert near["step"] == list(range(770, 780))
    assert near["value"][7] == 1


def test_charts_are_drawn_for_who_has_not_seen_them(ask: Ask, run: Run) -> None:
    assert [ask("charts")[part] for part in ("end", "metrics", "resources")] == [False, None, None]
    (run.folder / "tensorboard").mkdir()
    events = writer._EventFile(run.folder / "tensorboard")
    for step in range(3_000):
        events.write(
            event_format.event(100.0 + step, step, {"loss": 1 / (step + 1), "odd": math.nan})
        )
    said = ask("charts", drawn="1")
    loss, _ = said["metrics"]["lines"]
    assert "<svg" in said["metrics"]["sheet"]
    assert "all 3,000 values are NaN" in said["metrics"]["sheet"]
    assert said["metrics"]["shape"]["keys"] == [["", "loss"], ["", "odd"]]
    assert said["metrics"]["shape"]["thinned"] is True
    values = np.frombuffer(base64.b64decode(loss["value"]), "<f4")
    assert (len(values), values[0], loss["began"]) == (1_000, 1.0, 100.0)
    assert said["media"] == {"rows": [], "notes": [], "hparams": {}}

    again = ask("charts", seen=said["seen"])
    assert again == {**dict.fromkeys(said), "seen": said["seen"], "end": False}
    events.write(event_format.event(5_000.0, 3_000, {"loss": 0.5}))
    news = ask("charts", seen=said["seen"])
    assert news["metrics"]["shape"]["newest"]["loss"] == "0.5"
    assert "<svg" not in news["metrics"]["sheet"]


@pytest.mark.parametrize(
    ("path", "query", "words"),
    [
        ("everything", {}, ["'everything'", "first-error"]),
        ("log", {"first": "x"}, ["first", "'x'", "whole number"]),
        ("log", {"count": "2001"}, ["count", "2001", "0 to 2000"]),
        ("log", {"process": "0,-1"}, ["process", "'-1'", "0,2"]),
        ("log", {"role": "chiefs"}, ["role", "'chiefs'", "primary, workers, servers"]),
        ("log", {"stream": "x"}, ["stream", "'x'", "o, e"]),
        ("search", {"text": ""}, ["text", "empty"]),
        ("search", {"text": "x", "case": "yes"}, ["case", "'yes'", "1 or 0"]),
        ("search", {"text": "x", "step": "2"}, ["step", "2", "-1 to 1"]),
        ("metrics", {"points": "1"}, ["points", "1", "3 to 100000"]),
    ],
)
def test_a_wrong_query_is_named(
    ask: Ask, path: str, query: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(OptionError) as wrong:
        ask(path, **query)
    assert all(word in str(wrong.value) for word in words), wrong.value
