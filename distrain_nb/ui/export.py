"""A run as one HTML file that opens anywhere: log, charts, results' names, settings and code.

It has no script and asks for nothing: its policy (CSP) refuses both. What a program has printed or
named stands in it as text.
"""

from __future__ import annotations

import html
import re
import time
from dataclasses import replace
from itertools import accumulate, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb import __version__
from distrain_nb.errors import OptionError, RunNotReady
from distrain_nb.run.charts import drawing
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.log.index import Filter
from distrain_nb.run.metrics.step_times import StepTimesFolder
from distrain_nb.run.pages.code import code_of
from distrain_nb.run.pages.compare import settings_of
from distrain_nb.run.pages.media import index
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import clock, plural, summary_of
from distrain_nb.saved import document
from distrain_nb.saved.tail import shown_text
from distrain_nb.secrets import Guard
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import PROGRAM_FOLDER, RESOURCES_FOLDER

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from distrain_nb.run.log.reader import Line
    from distrain_nb.run.run import Run
    from distrain_nb.run.summary import RunSummary

FIRST_LINES, LAST_LINES = 1_000, 4_000
FIRST_CHARACTERS, LAST_CHARACTERS = 200_000, 800_000
LONGEST_CODE = 400_000
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_DARK = re.compile(r'\[data-jp-theme-light="?false"?\]\s*([^{}]+)\{([^{}]*)\}')
_PAGE = """
:root { color-scheme: light dark; --jp-ui-font-size1: 13px; }
body { margin: 0 auto; padding: 12px; max-width: 1400px; background: #fff; color: #1f2328;
  font: 13px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 18px; margin: 4px 0 8px; overflow-wrap: anywhere; }
h2 { font-size: 14px; margin: 16px 0 4px; }
h3 { font-size: 13px; margin: 8px 12px 2px; font-weight: 600; overflow-wrap: anywhere; }
.distrain .dn-log { max-height: 70vh; }
.distrain .dn-table :is(th, td) {
  white-space: pre-wrap; overflow-wrap: anywhere; vertical-align: top; }
.distrain .dn-table th { width: 30%; }
summary { padding: 4px 12px; cursor: pointer; }
footer { margin: 16px 0; font-size: 12px; opacity: .9; }
@media (prefers-color-scheme: dark) {
  :root { --jp-ui-font-color1: #e6edf3; --jp-ui-font-color2: #9da7b1; --jp-border-color2: #3d444d;
    --jp-layout-color1: #0d1117; --jp-layout-color2: #161b22; }
  body { background: #0d1117; color: #e6edf3; }
}
"""


def export(run: Run, file: str | os.PathLike[str] | None = None) -> Path:
    """Write the run into an HTML file, `NAME-NUMBER.html` unless it is named, and return its path.

    A file that is there is replaced. What looks like a secret is left out. Raises OptionError for a
    file that can't be written, RunUnreadable.
    """
    name = re.sub(r"[^\w.-]+", "-", _guard(run).text(run.name)).strip("-.")[:80]
    path = Path(file or f"{name or 'run'}-{run.id}.html").expanduser()
    text = page(run)
    try:
        replace_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise OptionError(f"{path} can't be written: {error.strerror}") from None
    except ValueError as error:  # a NUL in the name
        raise OptionError(f"{str(path)!r} can't be written: {error}") from None
    return path


def page(run: Run) -> str:
    """Return the HTML of the file."""
    guard = _guard(run)
    summary = guard.fields(summary_of(run))
    title = html.escape(f"{summary.name} #{summary.id}")
    sections = {
        "Charts": guard.html(_charts(run, guard)),
        "Results": guard.html(_results(run)),
        "Settings and environment": _settings(run, guard),
        "Code": guard.html(_code(run)),
    }
    parts = "".join(f"<h2>{name}</h2>{body}" for name, body in sections.items() if body)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title>{_style('run')}{_style('charts')}<style>{_PAGE}</style></head>"
        f"<body><main><h1>{title}</h1>{_run(run, summary, guard)}{parts}</main>"
        f"<footer>Written by distrain-nb {__version__} at {clock(time.time())}.</footer>"
        "</body></html>"
    )


def _guard(run: Run) -> Guard:
    return Guard.of_run(run.folder / PROGRAM_FOLDER)


def _style(widget: str) -> str:
    """Return a widget's rules, which follow the system's theme instead of JupyterLab's."""
    dark = r"@media (prefers-color-scheme: dark){\1{\2}}"
    return _DARK.sub(dark, document.style(widget))


def _run(run: Run, summary: RunSummary, guard: Guard) -> str:
    """Return state, note, report and log."""
    log = streams(run.folder).log
    total = log.update()
    rows = log.rows(Filter())
    first, bars = _log(log.lines(rows[:FIRST_LINES]), FIRST_CHARACTERS, guard), log.bars(Filter())
    behind = rows[max(len(first), len(rows) - LAST_LINES) :][::-1]
    last = _log((*bars, *log.lines(behind)), LAST_CHARACTERS, guard)[::-1]
    left_out = max(0, total + len(bars) - len(first) - len(last))
    gap = f"… {plural(left_out, 'line')} left out; %distrain logs {run.id} prints all"
    count = plural(total, "line") + (f", of which {left_out:,} are left out" if left_out else "")
    lines = document.log_html(summary, count, first, last, gap if left_out else "")
    return (
        f'<section class="distrain" data-state="{summary.state}" aria-label="run {summary.id}"'
        f' style="{document.tag_width(summary)}">{document.head(summary, time.time())}'
        f"{document.about(summary)}{lines}</section>"
    )


def _log(numbered: Iterable[tuple[int, Line]], characters: int, guard: Guard) -> list[Line]:
    """Return lines without what looks like a secret, as long as there is room."""
    lines = [replace(line, text=guard.line(shown_text(line))) for _, line in numbered]
    sizes = accumulate(len(line.text) + 1 for line in lines)
    return lines[: sum(1 for _ in takewhile(lambda size: size <= characters, sizes))]


def _charts(run: Run, guard: Guard) -> str:
    metrics = Metrics(run.folder)
    times = Metrics(run.folder, events=StepTimesFolder(run.folder))
    folded = {
        document.TIMES_TITLE: times,
        document.RESOURCES_TITLE: Metrics(run.folder, RESOURCES_FOLDER),
    }
    for part in (metrics, *folded.values()):
        part.read()
    parts = [_drawn(metrics)]
    parts += [_folded(title, _drawn(part)) for title, part in folded.items()]
    hparams = index(metrics.non_scalars)["hparams"]
    parts.append(document.hparams_html(guard.by_name(hparams)) if hparams else "")
    drawn = "".join(parts)
    return f'<div class="distrain distrain-charts">{drawn}</div>' if drawn else ""


def _drawn(metrics: Metrics) -> str:
    return f'<div class="dn-figure">{drawing.charts(metrics)}</div>' if metrics.keys else ""


def _results(run: Run) -> str:
    try:
        names = run.results.named
    except RunNotReady as error:
        return f"<p>{html.escape(str(error))}</p>"
    return _table(dict.fromkeys(names, f"%distrain result {run.id}"), "results")


def _settings(run: Run, guard: Guard) -> str:
    """Return where and how it ran, and the packages that it imports."""
    settings = {"experiment": run.experiment, **settings_of(run)}
    texts = guard.texts({name: text for name, text in settings.items() if text})
    options = {name: text for name, text in texts.items() if not name.startswith("package ")}
    packages = {n.removeprefix("package "): t for n, t in texts.items() if n not in options}
    return _table(options, "settings") + _folded("Packages", _table(packages, "packages"))


def _code(run: Run) -> str:
    room, parts = LONGEST_CODE, []
    for name, text in code_of(run).items():
        shown = text if len(text) <= room else f"{text[:room]}\n… cut"
        room = max(0, room - len(text))
        parts.append(f'<h3>{html.escape(name)}</h3><pre class="dn-diff" role="group" tabindex="0"'
                     f' aria-label="{html.escape(name)}">{html.escape(shown)}</pre>')  # fmt: skip
    inside = "".join(parts)
    return f'<div class="distrain">{_folded("Program", inside)}</div>' if inside else ""


def _folded(title: str, inside: str) -> str:
    folded = f'<details class="dn-folded"><summary>{html.escape(title)}</summary>{inside}</details>'
    return folded if inside else ""


def _table(texts: Mapping[str, str], label: str) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(text)}</td></tr>'
        for name, text in texts.items()
    )
    table = f'<table class="dn-table" aria-label="{label}"><tbody>{rows}</tbody></table>'
    return f'<div class="distrain">{table}</div>' if rows else ""
