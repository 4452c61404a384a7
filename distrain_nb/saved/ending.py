"""What a document gets of a run or a study that it was saved before the end of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.log.index import Filter
from distrain_nb.run.metrics.step_times import StepTimesFolder
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import summary_of
from distrain_nb.saved.document import LINES, chart_bundle, run_bundle
from distrain_nb.saved.study_table import StudyTable
from distrain_nb.saved.tail import Tail
from distrain_nb.study.answers import end_answer
from distrain_nb.study.summary import summary_of as study_summary_of
from distrain_nb.worker.files.folder import RESOURCES_FOLDER

if TYPE_CHECKING:
    from distrain_nb.run import Run
    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.study import Study
    from distrain_nb.study.importances import Importances


def run_ending(run: Run) -> Answer:
    """Return whether the run has ended, what it says then as text, and, once it has ended, as HTML
    with its charts. Raises RunUnreadable."""
    ending = answer(run, "ending", {})
    return {**ending, "html": _run_html(run) if ending["final"] else ""}


def _run_html(run: Run) -> str:
    summary, log = summary_of(run), streams(run.folder).log
    log.update()
    rows = log.rows(Filter())
    last = [line for _, line in log.lines(rows[-LINES:])]
    tail = Tail.ending_with(last, [bar for _, bar in log.bars(Filter())], len(rows))
    metrics = Metrics(run.folder)
    times = Metrics(run.folder, events=StepTimesFolder(run.folder))
    resources = Metrics(run.folder, RESOURCES_FOLDER)
    for read in (metrics, times, resources):
        read.read()
    charts = chart_bundle(metrics, times, resources).get("text/html", "")
    return f"{run_bundle(summary, tail, metrics)['text/html']}{charts}"


def study_ending(study: Study, importances: Importances) -> Answer:
    """Return the same of a study, whose table has its charts. Raises RunUnreadable."""
    ending = end_answer(study)
    if not ending["final"]:
        return {**ending, "html": ""}
    summary = study_summary_of(study)
    shares = importances.of(study.spec, summary.trials, wait=True)
    return {**ending, "html": StudyTable(summary, shares).still()}
