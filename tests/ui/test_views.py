"""What a monitor says: summary, log, charts, in HTML and in text."""

from __future__ import annotations

import html
import json
import os
import re
import time
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from distrain_nb.backends.cost import RunCost
from distrain_nb.run.charts import drawing
from distrain_nb.run.charts.lines import Metrics, chart_line
from distrain_nb.run.log.reader import LogReader
from distrain_nb.run.metrics.records import POINT
from distrain_nb.run.summary import (
    MOST_STEPS,
    clock,
    duration,
    plural,
    progress_text,
    short_number,
    summary_of,
)
from distrain_nb.saved import ansi, document
from distrain_nb.saved.tail import KEPT_LINES, LONGEST_SHOWN, Tail
from distrain_nb.saved.tracebacks import report_html, report_line
from distrain_nb.ui.experiment_table import experiment_table
from distrain_nb.ui.live import LiveView
from distrain_nb.ui.table import runs_table
from distrain_nb.worker.files.folder import WATCHED_FILE
from distrain_nb.worker.files.status import LONGEST_TRAIL, Progress, State, Status, Stretch
from distrain_nb.worker.supervisor.heartbeat import LOOKS_AGAIN_WITHIN_S, note_watched
from tests.ui.runs import RunFolder

ANSI = Path(__file__).with_name("ansi.json")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def tail_of(run: RunFolder) -> Tail:
    tail = Tail()
    for records in iter(LogReader(run.folder).records, b""):
        tail.add(records)
    return tail


def metrics_of(run: RunFolder) -> Metrics:
    metrics = Metrics(run.folder)
    metrics.read()
    return metrics


def test_a_tail_is_the_same_however_the_log_arrives(run: RunFolder) -> None:
    """A bar moves, stands still, and makes way for the next, in one piece or record by record."""
    records = [
        b"1.0\t0\to\tbegin",
        b"1.1\t0\tE\t 10%",
        b"1.2\t1\tE\t 20%",
        b"1.3\t0\tE\t 90%",
        b"1.4\t0\te\t100%",
        b"1.5\t1\to\ta\ttab",
        b"no record",
        b"1.6\t0\tO\t  5%",
    ]
    at_once, one_by_one = Tail(), Tail()
    at_once.add(b"".join(record + b"\n" for record in records))
    for record in records:
        one_by_one.add(record + b"\n")
    whole = at_once.all()
    assert whole == one_by_one.all()
    assert [line.text for line in whole.lines] == ["begin", "100%", "a\ttab"]
    assert [(bar.process, bar.text) for bar in whole.bars] == [(1, " 20%"), (0, "  5%")]


def test_lines_come_from_the_kernel_while_no_page_has_them_from_its_server(run: RunFolder) -> None:
    log, tail = LogReader(run.folder), Tail()
    view = LiveView(summary_of(run), tail, metrics_of(run), lambda path, query: {})

    def sent(text: str, looked_s_ago: float | None = None) -> bytes:
        run.print(0, text)
        summary, news = summary_of(run), tail.add(log.records())
        if looked_s_ago is not None:
            note_watched(run.folder)
            os.utime(run.folder / WATCHED_FILE, (time.time() - looked_s_ago,) * 2)
        view.show(summary, news, True)
        return bytes(view.widget.children[0].batch["lines"])

    assert b"first" in sent("first\n")
    assert b"second" not in sent("second\n", looked_s_ago=0)
    lines = sent("third\n", looked_s_ago=LOOKS_AGAIN_WITHIN_S)  # the page is closed
    assert b"second" in lines and b"third" in lines


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (59.9, "59 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.031249, "0.03125"),
        (-99.5, "-99.5"),
        (1.0, "1"),
        (100_001.2, "100,001"),
        (1.23456e-5, "1.235e-05"),
        (float("nan"), "nan"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert short_number(value) == text


def test_plurals() -> None:
    assert [plural(1, "rank"), plural(2000, "rank"), plural(2, "process")] == [
        "1 rank",
        "2,000 ranks",
        "2 processes",
    ]


def test_the_summary_in_one_line(run: RunFolder) -> None:
    run.created = time.time() - 61
    summary = summary_of(run)
    assert summary.line(run.created + 61) == (
        "run 7 (digits): running for 1 min 01 s on this machine, 2 ranks"
    )
    run.enter(State.FAILED, error="rank 1 failed")
    run.created = run.status.times["failed"] - 61
    assert "failed after 1 min 01 s" in summary_of(run).line(run.created + 1000)
    run.backend, run.rehearsed = "vertex", True
    assert summary_of(run).where == "Vertex AI (rehearsal)"


def test_the_phases_and_how_long_each_took(run: RunFolder) -> None:
    assert [step.label for step in summary_of(run).steps] == ["captured", "start", "running"]
    assert summary_of(run).steps[-1].end is None
    run.enter(State.SUCCEEDED)
    steps = summary_of(run).steps
    assert [step.label for step in steps] == ["captured", "start", "running", "succeeded"]
    assert steps[2].begin == run.status.times["running"]
    assert steps[2].end == run.status.times["succeeded"]


def test_what_was_imported_and_a_start_after_a_lost_machine_are_phases(run: RunFolder) -> None:
    trail = ["starting\tstarting", "starting\timporting torch", "running\trunning"]
    trail += ["running\tstarting again", "running\trunning", "stopping\tthe rest"]
    began = run.created
    stretches = [Stretch(*text.split("\t"), began + 2 * n) for n, text in enumerate(trail)]
    run.status = replace(run.status, trail=tuple(stretches))
    labels = [step.label for step in summary_of(run).steps]
    assert labels[:4] == ["captured", "start", "importing torch", "running"]
    assert labels[4:] == ["starting again", "running", "stopping"]
    assert [step.begin for step in summary_of(run).steps[1:3]] == [began, began + 2]
    run.enter(State.FAILED)
    assert summary_of(run).steps[-1].label == "failed"


def test_a_run_that_starts_again_and_again_keeps_its_last_phases(run: RunFolder) -> None:
    for number in range(200):
        run.status = run.status.reach(f"attempt {number}").reach(f"attempt {number}")
    assert len(run.status.trail) <= LONGEST_TRAIL + 2
    steps = summary_of(run).steps
    assert len(steps) <= MOST_STEPS + 1
    assert [steps[0].label, steps[3].label, steps[-1].label] == ["captured", "…", "attempt 199"]


def test_a_run_of_a_version_without_a_trail_has_its_states(run: RunFolder) -> None:
    run.status = replace(run.status, trail=())
    assert [step.label for step in summary_of(run).steps] == ["captured", "start", "running"]


def test_a_moving_line_is_apart_until_it_stands(run: RunFolder) -> None:
    run.print(0, "before\n")
    run.print(0, "\r10%", "e")
    batch = tail_of(run).all()
    assert [line.text for line in batch.lines] == ["before"]
    assert [line.text for line in batch.bars] == ["10%"]
    run.print(0, "\r100%\n", "e")
    batch = tail_of(run).all()
    assert [line.text for line in batch.lines] == ["before", "100%"]
    assert batch.bars == ()


def test_a_tail_is_bounded_and_numbers_its_lines(run: RunFolder) -> None:
    count = KEPT_LINES * 2 + 5
    run.print(1, "".join(f"line {n}\n" for n in range(count)))
    run.print(1, "x" * (LONGEST_SHOWN + 1) + "\n")
    tail = tail_of(run)
    whole = tail.all()
    assert (tail.total, whole.first, len(whole.lines)) == (
        count + 1,
        count + 1 - KEPT_LINES,
        KEPT_LINES,
    )
    last = whole.as_bytes().decode().splitlines()[-1]
    assert last.startswith("1\to\t")
    assert last.endswith(f"xx… ({LONGEST_SHOWN + 1:,} characters)")


@pytest.mark.parametrize(("text", "shown"), json.loads(ANSI.read_text(encoding="utf-8")))
def test_ansi_colours_become_spans_and_text_stays_text(text: str, shown: str) -> None:
    assert ansi.to_html(text) == shown


def test_a_report_is_whole_and_escaped() -> None:
    text = 'rank 1 failed: ValueError: <x>\n  File "a.py", line 1\nValueError: <x>\nrank 0: stopped'
    page = report_html(text)
    assert '<div class="dn-cause">rank 1 failed: ValueError: &lt;x&gt;</div>' in page
    assert '<span class="dn-place">  File "a.py", line 1</span>' in page
    assert '<span class="dn-raised">ValueError: &lt;x&gt;</span>\nrank 0: stopped' in page
    assert report_html("") == ""


def test_what_is_saved_has_all_facts(run: RunFolder) -> None:
    run.print(0, "\x1b[32mhello\x1b[0m <world>\n")
    run.print(1, "oops\n", "e")
    run.report(30, **{"train/loss": 1.0})
    run.enter(State.FAILED, error="rank 1 failed: exited with status 3", note="No space left")
    bundle = document.run_bundle(summary_of(run), tail_of(run), metrics_of(run))
    page, text = bundle["text/html"], bundle["text/plain"]
    for words in ("digits", "failed", "this machine", "2 ranks", "exited with status 3"):
        assert words in page
        assert words in text
    assert '<span class="ansi-green">hello</span> &lt;world&gt;' in page
    assert "<script" not in page
    assert "[rank 0] hello <world>\n[rank 1] oops" in text
    assert "note: No space left" in text
    assert "train/loss " in text


def test_each_choice_of_a_saved_log_is_marked_when_it_is_made(run: RunFolder) -> None:
    for process in range(2):
        run.print(process, "hello\n")
    page = document.run_bundle(summary_of(run), tail_of(run), metrics_of(run))["text/html"]
    choices = re.findall('type="radio" name="[^"]+" id="([^"]+)"', page)
    assert [choice.rpartition("-")[2] for choice in choices] == ["all", "0", "1"]
    for choice in choices:
        assert f'#{choice}:checked~.dn-bar label[for="{choice}"]{{' in page
        assert len(re.findall(f'<label [^>]*for="{choice}"', page)) == 1


REPORT = """rank 1 failed first: ValueError: wrong: 3
Traceback (most recent call last):
  Cell In[2], line 8, in <module>
    train(3)
  Cell In[2], line 5, in train
    raise ValueError(text)
ValueError: wrong:
  3
rank 0: KeyError: 'other'"""
OTHER = """Traceback (most recent call last):
  Cell In[2], line 6, in train
KeyError: 'one'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  Cell In[2], line 7, in train
KeyError: 'other'"""


def test_a_saved_failure_has_one_traceback_before_the_readers_eyes(run: RunFolder) -> None:
    ours, others = REPORT.splitlines()[1:-1], OTHER.splitlines()
    for n in range(max(len(ours), len(others))):  # the ranks' lines alternate
        for process, lines in ((1, ours), (0, others)):
            if n < len(lines):
                run.print(process, f"{lines[n]}\n", "e")
    run.print(0, "after\n", "e")
    run.enter(State.FAILED, error=REPORT)
    bundle = document.run_bundle(summary_of(run), tail_of(run), metrics_of(run))
    page, unstyled = bundle["text/html"].split('<div class="dn-unstyled')
    text = bundle["text/plain"]
    assert html.escape(text.partition("\n")[2]) in unstyled
    opened = re.sub("<details.*?</details>", "", page, flags=re.S)
    assert opened.count("Traceback (most recent call last)") == 1
    assert page.count("Traceback (most recent call last)") == 4, "folded, and not lost"
    assert "<span>KeyError: &#x27;other&#x27;</span></summary>" in page
    assert "<span>after</span>" in opened
    assert text.count("raise ValueError(text)") == 1
    assert "[rank 0] KeyError: 'one'" in text, "the report doesn't have it"


def test_a_traceback_of_a_run_that_has_not_failed_stays_open(run: RunFolder) -> None:
    run.print(0, f"{OTHER}\n", "e")
    run.enter(State.SUCCEEDED)
    assert (
        "<details"
        not in document.run_bundle(summary_of(run), tail_of(run), metrics_of(run))["text/html"]
    )


def test_a_report_in_a_line_names_the_cause_and_the_cells_line() -> None:
    said = report_line(f"run 2 (digits) failed\n{REPORT}")
    assert said == (
        "run 2 (digits) failed: rank 1 failed first: ValueError: wrong: 3"
        " (Cell In[2], line 5, in train)"
    )
    assert report_line("run 2 failed\nwas killed") == "run 2 failed: was killed"


def test_what_is_saved_is_small_however_much_there_was(run: RunFolder) -> None:
    for process in range(2):
        run.print(process, f"{'x' * 5_000}\n" * 3_000)
        tags = {f"metric {n}": float(n) for n in range(12)}
        run.report(3_000, f"rank-{process}", **tags)
    run.enter(State.SUCCEEDED)
    metrics = metrics_of(run)
    bundle = document.run_bundle(summary_of(run), tail_of(run), metrics)
    chart = document.chart_bundle(metrics)
    assert chart["text/html"].count('<path class="dn-line"') == 24
    assert len(json.dumps([bundle, chart])) < 250_000
    assert "of 6,000 lines · %distrain logs 7" in bundle["text/html"]


def test_a_page_without_styles_and_drawings_gets_a_picture_of_each_chart(run: RunFolder) -> None:
    run.report(300, "rank-0", **{"loss <b>": 1.0, "accuracy": 0.5})
    page = document.chart_bundle(metrics_of(run))["text/html"]
    styled, unstyled = page.split('<div class="dn-unstyled')
    assert '<div class="distrain-charts dn-styled' in styled and 'hidden="hidden">' in styled
    packed = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', unstyled)
    pictures = [ElementTree.fromstring(b64decode(each)) for each in packed]
    drawn = [each.findall(".//{*}path[@class='dn-line']") for each in pictures]
    titles = [each.findtext("{*}text") or "" for each in pictures]
    assert [len(lines) for lines in drawn] == [1, 1]
    assert all((line.get("d") or "").count("L") > 10 for lines in drawn for line in lines)
    assert [title.rpartition(" ")[0] for title in titles] == ["loss <b>", "accuracy"]
    for picture in pictures:  # the middle of a label is at the height of its row
        plot, *rest = picture.findall("{*}svg")
        top, height = float(plot.get("y", 0)), float(plot.get("height", 0))
        rows = plot.find("{*}path[@class='dn-rows']")
        assert rows is not None and not rest
        shares = [float(y) / 1000 for y in re.findall(r"M0 ([\d.]+)H", rows.get("d", ""))]
        labels = picture.findall("{*}text[@text-anchor='end']")
        heights = [float(label.get("y", 0)) - 4 for label in labels]
        assert shares and heights == pytest.approx([top + y * height for y in shares], abs=1)


def test_no_metrics_leave_no_chart(run: RunFolder) -> None:
    assert document.chart_bundle(metrics_of(run)) == {"text/plain": ""}


def test_a_thinned_line_keeps_its_peaks() -> None:
    points = np.zeros(100_000, dtype=POINT)
    points["step"] = np.arange(len(points))
    points["value"][[1_234, 77_777]] = (50.0, -50.0)
    points["value"][5] = np.nan
    line = chart_line(points, 1_000)
    assert len(line.x) == 1_000
    assert line.x.dtype == line.y.dtype == np.float32
    assert np.nanmax(line.y) == 50.0
    assert np.nanmin(line.y) == -50.0
    assert line.last == 0.0


def test_a_line_is_drawn_in_order_of_its_steps_and_large_steps_stay_exact() -> None:
    points = np.array([(2**40 + 1, 0, 1.0), (2**40, 0, 2.0)], dtype=POINT)
    line = chart_line(points, 1_000)
    assert line.x.tolist() == [2**40, 2**40 + 1]
    assert line.y.tolist() == [2.0, 1.0]
    assert line.last == 2.0


def test_a_drawing_of_awkward_numbers(run: RunFolder) -> None:
    run.report(1, one=1.0)
    run.report(3, nothing=float("nan"))
    run.report(1, unbounded=float("inf"))
    page = drawing.charts(metrics_of(run))
    assert page.count("<svg") == 1
    assert page.count('class="dn-dots"') == 1
    assert "all 3 values are NaN" in page
    assert "the only value is infinite or NaN" in page
    assert "nan" not in re.sub("<[^>]*>nan</[^>]*>", "", page)  # but as the newest value


def test_the_table_of_runs(run: RunFolder, tmp_path: Path) -> None:
    run.report(2, loss=1.0, acc=0.5, lr=1.0, norm=2.0)
    run.enter(State.SUCCEEDED)
    other = RunFolder(tmp_path / "other", id=8, name="<night>", experiment="nights")
    table = runs_table([other, run])
    lines = repr(table).splitlines()
    assert " ".join(lines[0].split()) == (
        "run name state where best metric duration started experiment"
    )
    assert lines[1].split()[:4] == ["8", "<night>", "●", "running"]
    assert "✓ succeeded" in lines[2]
    assert "this machine, 2 ranks  loss 1 " in lines[2]
    assert lines[1].endswith("nights")
    assert lines[3] == f"as of {clock(table.now)}"
    assert f"as of {clock(table.now)}" in table.still()
    assert "as of" not in runs_table([run]).still()
    assert table.frame.loc[7, "time_series_metric.lr"] == pytest.approx(1.111, abs=1e-3)
    assert "&lt;night&gt;" in table.still()
    assert "no runs yet" in repr(runs_table([]))
    assert "no runs yet" in runs_table([]).still()


def test_a_table_says_what_runs_have_cost_where_one_does(run: RunFolder, tmp_path: Path) -> None:
    run.enter(State.RUNNING)
    run.enter(State.SUCCEEDED)
    other = RunFolder(tmp_path / "other", id=8)
    left_out = "storage is not counted"
    RunCost(hourly=3.6e6, currency="EUR", note=left_out).write(run.folder)
    table = runs_table([other, run])
    assert table.headings[-1] == "cost"
    assert table.rows[0][-1] == ""
    assert re.fullmatch(r"[\d.]+ EUR", table.rows[1][-1])
    row = table.summaries[1].as_json()
    assert (row["cost"], row["cost_note"]) == (table.rows[1][-1], left_out)
    assert f"cost: {left_out}" in repr(table)
    assert f"<p>cost: {left_out}</p>" in table.still()
    line = table.summaries[1].summary.line(0)
    assert line.endswith(f"{row['cost']} ({left_out})")


def test_an_experiment_is_a_table_of_parameters_and_metrics(tmp_path: Path) -> None:
    """Its columns are called as google-cloud-aiplatform's `get_experiment_df` calls them."""
    one = RunFolder(tmp_path / "1", id=1, options={"param": ["lr=0.5", "optimizer=<adam>"]})
    one.report(12, **{"loss": 1.0, "val/acc": 0.5})
    one.enter(State.SUCCEEDED)
    other = RunFolder(tmp_path / "2", id=2, options={"param": ["lr=1e-3", "width=16"]})
    table = experiment_table([other, one])
    named = ["param.lr", "param.width", "param.optimizer", "metric.loss", "metric.val/acc"]
    last = ["time_series_metric.loss", "time_series_metric.val/acc"]
    assert list(table.headings[4:]) == [*named, *last] == list(table.frame.columns[11:])
    row = table.frame.loc[1]
    assert (row["param.lr"], row["param.optimizer"]) == (0.5, "<adam>")
    assert row["metric.loss"] == 1.0 < row["time_series_metric.loss"]  # it has risen since
    assert row["metric.val/acc"] == row["time_series_metric.val/acc"] == row["best_value"]
    assert table.frame.loc[2, "param.width"] == 16
    assert repr(table).splitlines()[2].split()[:3] == ["1", "digits", "✓"]
    assert "&lt;adam&gt;" in table._repr_html_()


def test_of_thousands_of_runs_the_document_keeps_what_one_reads(run: RunFolder) -> None:
    run.enter(State.SUCCEEDED)
    one = runs_table([run]).summaries[0]
    table = replace(runs_table([run]), summaries=(one,) * 2_000)
    assert len(table.frame) == 2_000
    saved = table._repr_mimebundle_()
    assert sum(map(len, saved.values())) < 50_000
    for text in saved.values():
        assert "1,950 older runs have no row here: see distrain_nb.runs().frame" in text
    assert replace(table, summaries=(one,) * 51).more.startswith("1 older run has no row")
    assert replace(table, summaries=(one,) * 50).more == ""


def test_long_work_is_told_with_its_bytes_and_time(run: RunFolder) -> None:
    now = time.time()
    sending = Progress("sending the image", 12 << 20, 40 << 20, since=now - 61)
    run.enter(State.STARTING, progress=sending)
    run.status.write(run.folder)
    assert Status.read(run.folder).progress == sending
    summary = summary_of(run)
    assert summary.line(now).endswith("sending the image: 12 MiB of 40 MiB, 1 min 01 s")
    assert summary.as_json()["progress"]["done"] == 12 << 20
    page = document.run_bundle(summary, Tail(), metrics_of(run))["text/html"]
    assert f'<progress value="{12 << 20}" max="{40 << 20}"></progress> sending the image' in page
    run.enter(State.RUNNING)
    assert summary_of(run).progress is None


@pytest.mark.parametrize(
    ("progress", "text"),
    [(Progress("queueing"), "queueing"), (Progress("capturing", 2048), "capturing: 2 KiB")],
)
def test_progress_tells_only_what_is_known(progress: Progress, text: str) -> None:
    assert progress_text(progress, time.time()) == text


def test_a_large_run_stays_small_in_a_saved_notebook(run: RunFolder) -> None:
    run.report(20_000, loss=1.0, acc=0.5, lr=1.0, norm=2.0, speed=3.0)
    for part in range(4):
        run.print(part % 2, "".join(f"epoch {n}: loss {n / 7:.6f}\n" for n in range(10_000)))
    metrics, tail = metrics_of(run), tail_of(run)
    bundles = [document.run_bundle(summary_of(run), tail, metrics), document.chart_bundle(metrics)]
    assert tail.total == 40_000
    assert len(json.dumps(bundles)) < 290_000
