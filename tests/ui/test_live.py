"""The view of a run while it goes on: who draws its charts."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from distrain_nb.run import Run
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.summary import summary_of
from distrain_nb.saved import unstyled
from distrain_nb.saved.tail import Tail
from distrain_nb.ui import live
from distrain_nb.ui.live import LiveView
from distrain_nb.ui.monitor import NOTHING
from distrain_nb.worker.files.folder import DRAWN_FILE
from distrain_nb.worker.supervisor.heartbeat import note_drawn, note_watched

from .runs import RunFolder


@pytest.fixture
def run(tmp_path: Path, home: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "7")
    folder.report(5, loss=1.0)
    return folder


def test_the_kernel_draws_no_charts_that_the_page_has_from_its_server(run: RunFolder) -> None:
    summary = summary_of(cast("Run", run))
    view = LiveView(summary, Tail(), Metrics(run.folder), lambda path, query: {})
    note_watched(run.folder)
    note_drawn(run.folder)
    view.show(summary, NOTHING, changed=False)
    assert not view.charts.widgets
    (run.folder / DRAWN_FILE).unlink()  # a page without our extension has the log alone
    view.show(summary, NOTHING, changed=False)
    assert view.widget.children[1:] == view.charts.widgets != ()


def test_the_last_charts_are_drawn_for_every_page(run: RunFolder) -> None:
    summary = summary_of(cast("Run", run))
    view = LiveView(summary, Tail(), Metrics(run.folder), lambda path, query: {})
    note_drawn(run.folder)
    view.draw(last=True)
    assert view.widget.children[1:] == view.charts.widgets != ()


def test_a_long_log_is_sent_in_parts_between_its_whole_end(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "ALWAYS_WHOLE_UP_TO", 0)
    summary, tail = summary_of(cast("Run", run)), Tail()
    view = LiveView(summary, tail, Metrics(run.folder), lambda path, query: {})
    sent = []
    for number in range(3):
        view.show(summary, tail.add(b"1.0\t0\to\tline %d\n" % number), changed=True)
        view.show(summary, NOTHING, changed=False)
        batch = view.widget.children[0].batch
        sent.append((batch["whole"], batch["first"], batch["lines"].count(b"\n")))
    assert sent == [(True, 0, 1), (False, 1, 1), (False, 2, 1)]


def test_a_page_without_widgets_or_styles_has_the_text_of_a_run_that_has_begun() -> None:
    shown = unstyled.placeholder("run 7: starting <soon>\nits log: %distrain logs 7")
    assert shown.startswith("<style>")
    assert shown.count("run 7: starting &lt;soon&gt;") == 2
    assert shown.count("its log: %distrain logs 7") == 2
