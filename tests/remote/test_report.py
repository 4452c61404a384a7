"""What workers state in the log of a run that failed elsewhere, and how carriers read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from distrain_nb.backends.remote.submission import Journal
from distrain_nb.backends.remote.worker_reports import (
    HangNotes,
    has_saved_ahead,
    last_reports,
    saving,
)
from distrain_nb.worker.files.cause import EXIT, NEAR_LIMIT, PROGRAM, Cause
from distrain_nb.worker.files.coded_line import CodedLine, read

LABELS = ["rank 0", "rank 1", "primary 0", "workers 0"]
FAILED = 'distrain[failed kind=program subject="rank {0}"]: rank {0} failed: {1}'
LOG = f"""\
2.0	1	e	Traceback (most recent call last):
2.0	1	e	ValueError: rank 9 failed
2.1	3	o	rank 3 failed, says the program
2.1	3	e	{FAILED.format(1, "ValueError: boom")}
2.1	2	e	{FAILED.format(0, "RuntimeError: connection closed")}
2.2	3	e	Traceback (most recent call last):
2.2	2	e	Traceback (most recent call last):
2.2	3	e	ValueError: boom
"""


JOURNAL = Journal(labels=LABELS)


def first_report(folder: Path) -> str:
    return str(next(iter(last_reports(folder, JOURNAL)), ""))


def test_a_statement_reads_as_it_was_written() -> None:
    facts = {"status": "-9", "subject": 'the "rank" 1]: x', "summary": "killed\\ by a\n\x1b ü"}
    stated = CodedLine("failed", "in any words: [at all]", facts)
    assert read(str(stated)) == read(f"[rank 1] {stated}") == stated
    assert read("distrain[saving]: saving") == CodedLine("saving", "saving")
    for line in ("", "a distrain[saved]: x", "distrain[saved x]: y", 'distrain[a b="\\x"]: c'):
        assert read(line) is None, line


def test_the_report_that_began_first_is_given_whole(tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text(LOG)
    assert first_report(tmp_path) == (
        "rank 1 failed: ValueError: boom\nTraceback (most recent call last):\nValueError: boom"
    )
    assert last_reports(tmp_path, JOURNAL)[0].cause == Cause(PROGRAM, "rank 1")


def test_a_cause_is_no_matter_of_words(tmp_path: Path) -> None:
    killed = Cause(EXIT, "rank 1", -9, "killed by SIGKILL")
    stated = CodedLine("failed", "in other words", killed.facts())
    (tmp_path / "log.tsv").write_text(f"2.0\t2\te\t{stated}\n")
    [report] = last_reports(tmp_path, JOURNAL)
    assert report.cause == killed and report.headline == "in other words"
    (tmp_path / "log.tsv").write_text("2.0\t2\te\trank 1 failed: killed by SIGKILL\n")
    assert last_reports(tmp_path, JOURNAL) == []


def test_a_long_log_is_read_from_near_its_end(tmp_path: Path) -> None:
    before = "1.0\t0\to\tstep\n" * 40_000
    (tmp_path / "log.tsv").write_text(before + LOG)
    assert first_report(tmp_path).startswith("rank 1 failed: ValueError: boom\n")


def test_the_first_of_a_thousand_reports_is_found_before_all_others(tmp_path: Path) -> None:
    labels = [f"rank {rank}" for rank in range(1000)]
    trace = "".join(f"2.0\t{{0}}\te\t  File {line}, in a traceback\n" for line in range(15))
    report = f"2.0\t{{0}}\te\t{FAILED}\n{trace}"
    first = report.format(700, "ValueError: boom")
    others = (report.format(rank, "RuntimeError: gone") for rank in range(1000) if rank != 700)
    (tmp_path / "log.tsv").write_text("".join((first, *others)))
    reports = last_reports(tmp_path, replace(JOURNAL, labels=labels))
    assert (len(reports), reports[0].headline) == (1000, "rank 700 failed: ValueError: boom")


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

    def stuck(rank: int) -> str:
        return f"[service] {CodedLine('hang', f'rank {rank} waits for a lock')}"

    goes_on = f"[service] {CodedLine('goes-on', 'in any words')}"
    log = tmp_path / "log.tsv"
    log.write_text(f"1\t2\te\t{stuck(0)}\n2\t3\te\t{stuck(1)}\n")
    notes = HangNotes(tmp_path)
    both = "rank 0 waits for a lock; rank 1 waits for a lock"
    assert notes.hang() == notes.hang() == both
    with log.open("a") as file:
        file.write(f"3\t2\te\t{goes_on}\n4\t2\te\t[serv")
    still = "rank 1 waits for a lock"
    assert notes.hang() == HangNotes(tmp_path).hang() == still
    with log.open("a") as file:
        file.write(f"{stuck(0).removeprefix('[serv')}\n" + "5\t2\to\t-\n" * 60_000)
    assert notes.hang() == f"{still}; rank 0 waits for a lock"
    assert HangNotes(tmp_path).hang() == ""  # it reads the last lines of a long log


def test_a_replica_that_was_stopped_says_why_and_its_ranks_what_they_saved(tmp_path: Path) -> None:
    asked = [f"1.0\t{n}\te\tdistrain[saving]: saving\n" for n in (0, 1)]
    done = "1.0\t0\te\tdistrain[saved seconds=1.5]: saved\n"
    why = "it was stopped near its time limit, 60 s ahead of --timeout 7200"
    stated = CodedLine("failed", why, Cause(NEAR_LIMIT).facts())
    (tmp_path / "log.tsv").write_text(f"{asked[0]}{done}{asked[1]}2.0\t2\te\t{stated}\n")
    assert first_report(tmp_path) == why
    assert saving(tmp_path, JOURNAL).words == "stopped: rank 1 did not finish saving"
    (tmp_path / "log.tsv").write_text(asked[0] + done)
    assert saving(tmp_path, JOURNAL) == ("stopped after saving, in 1.5 s", True)
    (tmp_path / "log.tsv").write_text("1.0\t0\to\tdistrain: 3 km\n1.0\t0\to\tstep\n")
    assert saving(tmp_path, JOURNAL).words == ""


def test_only_the_last_attempt_counts_as_saved_ahead_of_its_limit(tmp_path: Path) -> None:
    saved = "1.0\t0\te\tdistrain[saved seconds=1.5]: saved\n"
    near = f"2.0\t2\te\t{CodedLine('failed', 'in any words', Cause(NEAR_LIMIT).facts())}\n"
    for earlier, log, is_so in (
        ("", saved + near, True), ("", near, False), ("", saved, False),
        (saved + near, near, False), (saved + near, saved + near, True),
    ):  # fmt: skip
        (tmp_path / "log.tsv").write_text(earlier + log)
        journal = replace(JOURNAL, attempt_at=len(earlier))
        assert has_saved_ahead(tmp_path, journal) is is_so, log


def test_lines_of_a_program_that_look_like_ours_harm_nobody(tmp_path: Path) -> None:
    odd = ("failed status=soon", "saved seconds=nan", "saved", "hang", "failed status=9e9")
    lines = [f"1.0\t{n % 2}\te\tdistrain[{code}]: x\n" for n, code in enumerate(odd)]
    (tmp_path / "log.tsv").write_text("".join(lines))
    assert {report.cause.status for report in last_reports(tmp_path, JOURNAL)} == {None}
    assert saving(tmp_path, JOURNAL).words == "stopped after saving, in 0.0 s"


def test_a_study_has_no_log(tmp_path: Path) -> None:
    assert HangNotes(tmp_path).hang() == saving(tmp_path, JOURNAL).words == ""
