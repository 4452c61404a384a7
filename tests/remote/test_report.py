"""What is found of a failure in the log of a run that failed elsewhere."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.backends.remote.attempts import (
    HangNotes,
    has_saved_ahead,
    last_reports,
    saving_note,
)

LABELS = ("rank 0", "rank 1", "primary 0", "workers 0")
LOG = """\
2.0	1	e	Traceback (most recent call last):
2.0	1	e	ValueError: rank 9 failed
2.1	3	o	rank 3 failed, says the program
2.1	3	e	rank 1 failed: ValueError: boom
2.1	2	e	rank 0 failed: RuntimeError: connection closed
2.2	3	e	Traceback (most recent call last):
2.2	2	e	Traceback (most recent call last):
2.2	3	e	ValueError: boom
"""


def first_report(folder: Path) -> str:
    return next(iter(last_reports(folder, LABELS)), "")


def test_the_report_that_began_first_is_given_whole(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text(LOG)
    assert first_report(tmp_path) == (
        "rank 1 failed: ValueError: boom\nTraceback (most recent call last):\nValueError: boom"
    )


def test_a_long_log_is_read_from_near_its_end(tmp_path: Path) -> None:
    before = "1.0\t0\to\tstep\n" * 40_000
    (tmp_path / "log.tsv").write_text(before + LOG)
    assert first_report(tmp_path).startswith("rank 1 failed: ValueError: boom\n")


def test_a_replica_that_was_killed_leaves_none(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("1.0\t0\to\tstep\n1.0\t2\te\tbash: line 1: Killed\n")
    assert first_report(tmp_path) == ""
    (tmp_path / "log.tsv").write_text("")
    assert first_report(tmp_path) == ""


def test_what_a_line_went_back_over_is_not_in_the_way(tmp_path: Path) -> None:
    """Lines of a service may have carriage returns, and odd ends of lines of their own."""
    odd = "1.0\t0\to\t10%\r20%\r\tof 30%\x0b\x1c\u2028\n1.0\t2\te\t\rrank 7\rfailed\n"
    (tmp_path / "log.tsv").write_text(odd + LOG, newline="")
    assert first_report(tmp_path).startswith("rank 1 failed: ValueError: boom\n")


def test_what_workers_say_of_a_run_that_stands_still(tmp_path: Path) -> None:
    """The last word of each replica counts, until it says that the run goes on."""
    stuck = (
        "[service] distrain: the run makes no progress: rank {} waits for a lock (silent for 44 s)"
    )
    log = tmp_path / "log.tsv"
    log.write_text(f"1\t2\te\t{stuck.format(0)}\n2\t3\te\t{stuck.format(1)}\n")
    both = "rank 0 waits for a lock (silent for 44 s); rank 1 waits for a lock (silent for 44 s)"
    standstill = HangNotes(tmp_path)
    assert standstill.note() == standstill.note() == f"it has made no progress: {both}"
    with log.open("a") as file:
        file.write(
            "3\t2\te\t[service] distrain: the run goes on after 50 s of silence\n4\t2\te\t[serv"
        )
    still = f"it has made no progress: {both.partition('; ')[2]}"
    assert standstill.note() == HangNotes(tmp_path).note() == still
    with log.open("a") as file:
        file.write(
            "ice] distrain: the run makes no progress: rank 0 sleeps\n" + "5\t2\to\t-\n" * 60_000
        )
    assert standstill.note() == f"{still}; rank 0 sleeps"
    assert HangNotes(tmp_path).note() == ""  # it reads the last lines of a long log


def test_a_replica_that_was_stopped_says_why_and_its_ranks_what_they_saved(tmp_path: Path) -> None:
    asked = [f"1.0\t{n}\te\tdistrain: the run is being stopped: saving\n" for n in (0, 1)]
    done = "1.0\t0\te\tdistrain: saved in 1.5 s\n"
    why = "it was stopped near its time limit, 60 s ahead of --timeout 7200"
    (tmp_path / "log.tsv").write_text(f"{asked[0]}{done}{asked[1]}2.0\t2\te\t{why}\n")
    assert first_report(tmp_path) == why
    assert saving_note(tmp_path, LABELS) == "stopped: rank 1 did not finish saving"
    (tmp_path / "log.tsv").write_text(asked[0] + done)
    assert saving_note(tmp_path, LABELS) == "stopped after saving, in 1.5 s"
    (tmp_path / "log.tsv").write_text("1.0\t0\to\tdistrain: 3 km\n1.0\t0\to\tstep\n")
    assert saving_note(tmp_path, LABELS) == ""


def test_only_the_last_attempt_counts_as_saved_ahead_of_its_limit(tmp_path: Path) -> None:
    labels = (*LABELS, "service")
    saved = "1.0\t0\te\tdistrain: saved in 1.5 s\n"
    near = "2.0\t2\te\tit was stopped near its time limit\n"
    again = "3.0\t4\te\tattempt 2 of 4, after it had saved ahead of its time limit\n"
    for log, is_so in (
        (saved + near, True), (near, False), (saved, False), (saved + near + again, False),
        (saved + near + again + near, False), (saved + near + again + saved + near, True),
    ):  # fmt: skip
        (tmp_path / "log.tsv").write_text(log)
        assert has_saved_ahead(tmp_path, labels) is is_so, log


def test_a_study_has_no_log(tmp_path: Path) -> None:
    assert HangNotes(tmp_path).note() == saving_note(tmp_path, ()) == ""
