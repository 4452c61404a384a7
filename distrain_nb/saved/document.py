"""The part of a run's view that a saved notebook keeps: HTML without scripts, and text."""

from __future__ import annotations

import html
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb import config, escapes
from distrain_nb.config import fingerprint
from distrain_nb.run import displays
from distrain_nb.run.charts import drawing
from distrain_nb.run.pages.media import index
from distrain_nb.run.summary import (
    SIGNS,
    Overview,
    RunSummary,
    clock,
    duration,
    label_of,
    newest,
    plural,
    tagged,
)
from distrain_nb.saved import ansi, unstyled
from distrain_nb.saved.markup import LITERAL, OWN_KEYS
from distrain_nb.saved.tail import Tail, shown_text
from distrain_nb.saved.tracebacks import blocks, report_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from distrain_nb.run.charts.lines import Metrics
    from distrain_nb.run.log.reader import Line
    from distrain_nb.run.run import Run

# page/src/lab/ renders them.
RUN_TYPE = "application/vnd.distrain.run+json"
STUDY_TYPE = "application/vnd.distrain.study+json"
# An executed notebook should stay under 300 kB.
LINES, CHARACTERS = 200, 40_000
TEXT_LINES, TEXT_CHARACTERS = 30, 20_000
COLOURS = 8
_STATIC = Path(__file__).parents[1] / "ui" / "static"  # what `make page` builds, of the views too
TIMES_TITLE, RESOURCES_TITLE = "Where the time goes", "Resources by rank"
_WRAP = (
    '<label class="dn-chip dn-wrap" title="Break long lines">'
    '<input class="dn-pick" type="checkbox">Wrap</label>'
)


def run_reference(run: Run, part: str = "run", final: bool = True) -> dict[str, Any]:
    """Return the reference by which JupyterLab's extension finds the run on the page's server, by
    MIME type.

    A number alone is that of another run in another place. The `part` is `run`, which stands for
    all of it, or `charts`, which are shown with it then. One that isn't `final` is of a run that
    was saved before its end, which the page may add.
    """
    home = fingerprint(run.folder.parents[1])
    return {
        RUN_TYPE: {
            "run": run.id,
            "home": home,
            "created": run.created,
            "part": part,
            "final": final,
        }
    }


def study_reference(number: int, created: float, final: bool) -> dict[str, Any]:
    """Return the reference of a study in this process's DISTRAIN_HOME; see `run_reference`."""
    home = fingerprint(config.home())
    return {STUDY_TYPE: {"study": number, "home": home, "created": created, "final": final}}


def run_bundle(summary: RunSummary, tail: Tail, metrics: Metrics) -> dict[str, str]:
    """Return state, error and the end of the log, by MIME type."""
    text = run_text(summary, tail, metrics)
    return {"text/html": f"{_run_html(summary, tail)}{unstyled.run(text)}", "text/plain": text}


def chart_bundle(
    metrics: Metrics, times: Metrics | None = None, resources: Metrics | None = None
) -> dict[str, str]:
    """Return the charts, the other contents of the event files, step `times` and the `resources`,
    by MIME type."""
    shown = still_displays(metrics)
    if not metrics.keys and not shown and not (times and times.keys):
        return {"text/plain": ""}
    of_times = still_charts(times, TIMES_TITLE) if times else ""
    of_resources = still_charts(resources, RESOURCES_TITLE) if resources else ""
    charts = f"{shown}{still_charts(metrics)}{still_media(metrics)}{of_times}{of_resources}"
    return charts_of(metrics, charts)


def charts_of(metrics: Metrics, drawn: str) -> dict[str, str]:
    """Return charts that are drawn in HTML, and the newest value of each metric, by MIME type."""
    return {"text/html": f"{style('charts')}{drawn}", "text/plain": "\n".join(newest(metrics))}


def still_charts(metrics: Metrics, title: str = "") -> str:
    """Return the charts as drawings, folded if they have a title; nothing where there are none."""
    if not metrics.keys:
        return ""
    drawn = (
        f'<div class="dn-chart-tools"><span class="dn-soft">smoothing, zoom, all points: '
        f"{html.escape(metrics.command)}</span></div>"
        f'<div class="dn-figure">{drawing.charts(metrics)}</div>'
    )
    if title:
        drawn = (
            f'<details class="dn-folded"><summary>{html.escape(title)}</summary>{drawn}</details>'
        )
    pictures = "" if title else unstyled.charts(metrics)
    return (
        f'<div class="distrain-charts dn-styled {LITERAL}" {OWN_KEYS} hidden="hidden">'
        f"{drawn}</div>{pictures}"
    )


def still_displays(metrics: Metrics) -> str:
    """Return the HTML of what the ranks have shown; nothing where there is nothing."""
    shown = displays.still(metrics.folder, metrics.command) if metrics.has_displays else ""
    return f'<div class="distrain-charts {LITERAL}" {OWN_KEYS}>{shown}</div>' if shown else ""


def still_media(metrics: Metrics) -> str:
    """Return the HTML of all that is no scalar: hyperparameters as a table, the rest as counts."""
    contents = index(metrics.non_scalars)
    kinds = [row["kind"] for row in contents["rows"]]
    counts = [plural(kinds.count(kind), kind) for kind in dict.fromkeys(kinds)]
    words = [f"{', '.join(counts)}: {metrics.command}"] if counts else []
    parts = [
        f'<div class="dn-chart-note">{html.escape(word)}</div>'
        for word in words + contents["notes"]
    ]
    table = hparams_html(contents["hparams"]) if contents["hparams"] else ""
    shown = f"{table}{''.join(parts)}"
    return f'<div class="distrain-charts {LITERAL}" {OWN_KEYS}>{shown}</div>' if shown else ""


def hparams_html(values: dict[str, dict[str, Any]]) -> str:
    """Return a row for each name, a column for each run of the HParams plugin."""
    names = dict.fromkeys(name for value in values.values() for name in value)
    heads = "".join(f'<th scope="col">{html.escape(run)}</th>' for run in values)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>'
        + "".join(f"<td>{html.escape(str(value.get(name, '')))}</td>" for value in values.values())
        + "</tr>"
        for name in names
    )
    return (
        '<details class="dn-folded"><summary>Hyperparameters</summary>'
        f'<table class="dn-hparams"><tr><td></td>{heads}</tr>{rows}</table></details>'
    )


def run_text(summary: RunSummary, tail: Tail, metrics: Metrics) -> str:
    """Write the run in plain text."""
    lines = tail.last(TEXT_LINES, TEXT_CHARACTERS)
    annotation = (summary.annotation.tag_text, summary.annotation.note)
    parts = [summary.saved_line(time.time()), *filter(None, annotation), *_notes(summary, metrics)]
    parts += ["  ".join(newest(metrics))]
    if len(lines) < tail.total:
        parts.append(f"the last {len(lines)} of {tail.total:,} lines; %distrain logs {summary.id}")
    parts += [tagged(summary.labels, line, text) for line, text in _texts(summary, lines)]
    return "\n".join(part for part in [*parts, summary.error] if part)


def _texts(summary: RunSummary, lines: Iterable[Line]) -> Iterator[tuple[Line, str]]:
    """Yield the log's lines; of a traceback that the report has, what was raised."""
    for block in blocks(lines):
        if block.is_traceback and block.is_in(summary.error):
            yield block.lines[0], block.raised
        else:
            yield from ((line, escapes.plain(shown_text(line))) for line in block.lines)


def _run_html(summary: RunSummary, tail: Tail) -> str:
    return "".join(
        [
            style(),
            f'<section class="distrain dn-styled {LITERAL}" {OWN_KEYS} hidden="hidden"',
            f' data-state="{summary.state}" aria-label="run {summary.id}"',
            f' style="{tag_width(summary)}">',
            head(summary, time.time()),
            _progress(summary),
            about(summary),
            _log(summary, tail),
            "</section>",
        ]
    )


def tag_width(summary: RunSummary) -> str:
    """Return the style that gives processes' labels room beside their lines."""
    return f"--dn-tags:{min(24, max([4, *map(len, summary.labels.values())]) + 1)}ch"


def head(summary: Overview, now: float) -> str:
    """Return the first line of a run or a study: state, time, name, place and steps."""
    steps = " ".join(
        f"<span>{html.escape(step.label)}{_took(step.begin, step.end)}</span>"
        for step in summary.steps
    )
    where = " · ".join(filter(None, (summary.where, summary.size, summary.cost_text)))
    when = "" if summary.final else f' <span class="dn-soft">as of {clock(now)}</span>'
    return (
        '<div class="dn-head"><span class="dn-badge">'
        f'<span class="dn-sign" aria-hidden="true">{SIGNS.get(summary.state, "◌")}</span> '
        f"<span>{html.escape(summary.state_text)}</span></span> "
        f'<span class="dn-time">{duration(summary.elapsed(now))}</span> '
        f'<span class="dn-name">{html.escape(summary.name)} #{summary.id}</span> '
        f'<span class="dn-soft">{html.escape(where)}</span> '
        f'<span class="dn-steps">{steps}</span>{when}</div>'
    )


def about(summary: RunSummary) -> str:
    """Return what people say of a run, what its reader should know, and the report of a failure."""
    note, tags = summary.annotation.note, summary.annotation.tags
    words = "".join(f'<span class="dn-label">{html.escape(tag)}</span> ' for tag in tags)
    words += f"<span>{html.escape(note)}</span>" if note else ""
    return "".join(
        [
            f'<div class="dn-about">{words}</div>' if words else "",
            f'<div class="dn-note">{html.escape(summary.note)}</div>' if summary.note else "",
            report_html(summary.error),
        ]
    )


def _progress(summary: RunSummary) -> str:
    if summary.progress is None:
        return ""
    progress, text = summary.progress, summary.doing(time.time())
    value = f' value="{progress.done}" max="{progress.total}"' if progress.total else ""
    return f'<div class="dn-note"><progress{value}></progress> {html.escape(text)}</div>'


def _took(begin: float | None, end: float | None) -> str:
    return "" if begin is None or end is None or end == begin else f" {duration(end - begin)}"


def _log(summary: RunSummary, tail: Tail) -> str:
    lines = tail.last(LINES, CHARACTERS)
    count = plural(tail.total, "line")
    if len(lines) < tail.total:
        count = f"the last {len(lines)} of {count} · %distrain logs {summary.id}"
    return log_html(summary, count, lines)


def log_html(
    summary: RunSummary, count: str, lines: Sequence[Line], last: Sequence[Line] = (), gap: str = ""
) -> str:
    """Return lines of a log below their tools; with `last` those too, behind a `gap`."""
    if not lines:
        return ""
    processes = sorted({line.process for line in (*lines, *last)})
    chooser = _chooser(summary, processes) if len(processes) > 1 else ("", "", "<span>log</span>")
    rules, inputs, chips = chooser
    between = f'<div class="dn-gap">{html.escape(gap)}</div>' if gap else ""
    rows = "".join((*_rows(summary, lines), between, *_rows(summary, last)))
    still = "" if gap else " dn-still"  # which shows the end first
    return (
        f'{rules}{inputs}<div class="dn-bar">{chips} <span class="dn-soft">{count}</span>'
        f"{_WRAP}</div>"
        f'<div class="dn-log{still}" role="log" tabindex="0" aria-label="log">'
        f"<div>{rows}</div></div>"
    )


def _rows(summary: RunSummary, lines: Iterable[Line]) -> Iterator[str]:
    """Yield a row for each line; tracebacks are folded where the report says what failed."""
    for block in blocks(lines):
        rows = "".join(_row(summary, line) for line in block.lines)
        if not (summary.error and block.is_traceback and block.raised):
            yield rows
            continue
        first = block.lines[0]
        tag, raised = html.escape(label_of(summary.labels, first)), html.escape(block.raised)
        yield (
            f'<details class="dn-trace dn-p{first.process % COLOURS} dn-n{first.process}">'
            f'<summary><span class="dn-tag">{tag}</span> <span>{raised}</span></summary>'
            f"{rows}</details>"
        )


def _row(summary: RunSummary, line: Line) -> str:
    return (
        f'<div class="dn-line dn-{line.stream} dn-p{line.process % COLOURS} dn-n{line.process}">'
        f'<span class="dn-tag">{html.escape(label_of(summary.labels, line))}</span> '
        f"<span>{ansi.to_html(shown_text(line))}</span></div>"
    )


def _chooser(summary: RunSummary, processes: list[int]) -> tuple[str, str, str]:
    """Return a filter that needs no script: (style rules, radio buttons, their labels)."""
    name = f"dn-{summary.id}-{int(summary.begin)}"
    choices = [("all", "all", ""), *_process_choices(summary, processes)]
    inputs = "".join(
        f'<input class="dn-pick" type="radio" name="{name}" id="{name}-{key}"'
        f"{' checked' if key == 'all' else ''}>"
        for key, _, _ in choices
    )
    chips = " ".join(
        f'<label class="dn-chip{colour}" for="{name}-{key}">{html.escape(text)}</label>'
        for key, text, colour in choices
    )
    rules = "".join(_rules(name, key) for key, _, _ in choices)
    return f"<style>{rules}</style>", inputs, chips


def _process_choices(summary: RunSummary, processes: list[int]) -> Iterator[tuple[str, str, str]]:
    for process in processes:
        text = summary.labels.get(process, str(process))
        yield str(process), text, f" dn-p{process % COLOURS}"


def _rules(name: str, key: str) -> str:
    chosen = (
        f'#{name}-{key}:checked~.dn-bar label[for="{name}-{key}"]'
        "{border-color:currentColor;background:var(--dn-paper);font-weight:600}"
    )
    if key == "all":
        return chosen
    return (
        chosen
        + f"#{name}-{key}:checked~.dn-log :is(.dn-line,.dn-trace):not(.dn-n{key}){{display:none}}"
    )


def _notes(summary: RunSummary, metrics: Metrics) -> list[str]:
    notes = (summary.note, *metrics.notes, *index(metrics.non_scalars)["notes"])
    return [f"note: {note}" for note in notes if note]


@lru_cache
def style(widget: str = "run") -> str:
    """Return the rules of a widget's views, for a document that has them without it."""
    css = (_STATIC / f"{widget}.css").read_text(encoding="utf-8")
    return f"<style>{' '.join(css.split())}{unstyled.STYLE}</style>"
