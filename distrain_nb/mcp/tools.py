"""The verbs of `%distrain` as tools for agents.

A tool that starts, cancels or deletes works only where `%distrain config` allows it. Every answer
is short, and says how to ask for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from distrain_nb import api
from distrain_nb.api import sessions as staying
from distrain_nb.config import Config, path_named
from distrain_nb.errors import OptionError, did_you_mean
from distrain_nb.mcp.answers import cut, finished, fitting, one_line
from distrain_nb.mcp.planned import keep_plan, readable_layouts, take_plan
from distrain_nb.run import Run, Store
from distrain_nb.run.pages import compared_rows
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.pages.compare import compare
from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.query import Query
from distrain_nb.run.pages.sessions import SessionRow, session_rows
from distrain_nb.run.session import SessionHandle, find_session, session_folders
from distrain_nb.run.summary import plural, short_number, summary_of
from distrain_nb.server.access import open_run, own_runs

if TYPE_CHECKING:
    from distrain_nb.run.pages.protocol import CurveAnswer, CurvesAnswer, LineRow, LogAnswer

MOST_LINES = 500
SEARCH_S = 20.0
LONGEST_WAIT_S, LOOK_S = 600, 0.05  # for a cell of a session

OFF = "Tools that {} runs are off; the user allows them by `%distrain config {}=on`."

_listing = Listing()


def list_runs(text: str = "", first: int = 0, count: int = 20) -> str:
    """List runs with state, duration, place, best metric and cause of a failure; the newest first.

    `text` has to be in a run's name, experiment or layout, in any case. `first` skips that many
    newer ones.
    """
    folded = text.casefold()
    runs = [
        run
        for run in own_runs(Store())
        if folded in f"{run.name}\n{run.experiment}\n{run.line}".casefold()
    ]
    chosen = runs[max(first, 0) :][: _within(count)]
    now, lines = time.time(), []
    for row in _listing.read(chosen):
        experiment = f"experiment {row.experiment}" if row.experiment else ""
        best = f"{row.best.name} {short_number(row.best.value)}" if row.best else ""
        parts = (row.summary.line(now), experiment, best, row.summary.cause)
        lines.append(cut("; ".join(filter(None, parts))))
    shown = fitting(lines)
    beyond = max(first, 0) + len(shown)
    older = f"; for older ones first={beyond}" if beyond < len(runs) else ""
    return finished([f"{len(shown):,} of {plural(len(runs), 'run')}{older}", *shown])


def show_run(run: str | int = "last") -> str:
    """Show a run: state, cause and report of a failure, last lines, findings, results and links.

    `run` is its number, its name, or last.
    """
    opened = _opened(run)
    parts = [str(answer(opened, "ending", {})["text"]), f"layout: {opened.line}"]
    parts += [f"{name}: {', '.join(values)}" for name, values in opened.options.items()]
    parts += [f"{name}: {address}" for name, address in opened.links.items()]
    if not opened.state.final:
        parts += [f"finding: {finding}" for finding in opened.findings]
    else:
        parts.append(f"results: {', '.join(opened.results) or 'none'}")
    return finished(parts, opened, ": read_log", from_both=True)


def read_log(
    run: str | int = "last",
    rank: int | None = None,
    text: str = "",
    regex: bool = False,
    stream: Literal["", "o", "e"] = "",
    first: int | None = None,
    count: int = 50,
) -> str:
    """Read lines of a run's log, each behind its number and the process that wrote it.

    Filters: `rank`; `text`, in any case, or with `regex` an expression; `stream`: o is stdout, e is
    stderr. `first` is the number of the first line; a negative one counts from the end. Without it
    the last `count` lines, or matches, are read. A count of 1 gives a long line whole, as far as
    an answer has room.
    """
    opened = _opened(run)
    first = -_within(count) if first is None else first
    query: dict[str, str] = {"stream": stream}
    if rank is not None:
        query["process"] = str(opened.process_of(rank))
    if text:
        asked = {**query, "text": text, "regex": str(int(regex))}
        rows, head = _matches(opened, asked, first, _within(count))
        lines = [line for row in rows for line in _log(opened, query, row, 1)["lines"]]
    else:
        log = _log(opened, query, first, _within(count))
        lines, head = [*log["lines"], *log["bars"]], plural(log["rows"], "line")
        rows = range(log["first"], log["first"] + len(lines))
    written = _written(opened, rows, lines, complete=count == 1)
    shown = fitting(written, from_end=first < 0)
    if not shown:
        return f"nothing here of {head}"
    skipped = len(written) - len(shown) if first < 0 else 0
    begin, end = rows[skipped], rows[skipped + len(shown) - 1]
    more = f"before: first={max(0, begin - _within(count))}; after: first={end + 1}"
    return finished([f"{len(shown):,} of {head}; {more}", *shown], opened, ": %distrain logs")


def read_metrics(
    run: str | int = "last",
    tag: str = "",
    kind: Literal["metrics", "times", "resources"] = "metrics",
    points: int = 20,
) -> str:
    """Read a run's metrics, the time of its steps, or what its ranks use of the machine.

    Without `tag`, the newest value of each series; with one, about so many points of each series.
    """
    opened = _opened(run)
    query = {"tag": tag, "points": str(max(3, _within(points)) if tag else 3)}
    curves = cast("CurvesAnswer", answer(opened, kind, query))
    lines = [cut(line) for curve in curves["lines"] for line in _points(curve, every=bool(tag))]
    shown = fitting([*lines, *curves["notes"]])
    left_out = len(lines) + len(curves["notes"]) - len(shown)
    more = [f"… {left_out:,} lines left out: ask for one tag"] if left_out else []
    if not shown:
        return f"no {kind}" + (f" called {cut(repr(tag))}" if tag else " yet")
    return finished([*shown, *more], opened)


def compare_runs(runs: list[str | int]) -> str:
    """Show by what runs differ: options, hyperparameters, outcome and newest metrics.

    `runs` are numbers or names of two runs or more.
    """
    compared = compare(map(_opened, runs), _listing)
    rows = [row for row in compared_rows.rows(compared) if row.differs]
    lines = [cut(f"{row.name}: {' | '.join(row.texts)}") for row in rows]
    shown = fitting(lines)
    more = [f"… {len(lines) - len(shown):,} more"] if len(shown) < len(lines) else []
    return finished([cut(" | ".join(compared.titles)), *shown, *more])


def show_stacks(run: str | int = "last") -> str:
    """Say where each rank of a run at work on this machine is, with its stacks.

    It takes a few seconds and interrupts nothing.
    """
    opened = _opened(run)
    return finished([str(opened.stacks())], opened)


def list_layouts() -> str:
    """List the layouts that are saved in `layouts/` below this server's folder, with their text."""
    layouts = readable_layouts()
    texts = [f"{name}:\n{text.strip()}" for name, text in layouts.items()]
    shown = fitting([cut(text, lines=True) for text in texts])
    left_out = [*layouts][len(shown) :]
    more = [f"… more: {', '.join(left_out)}"] if left_out else []
    return finished(["\n\n".join([*shown, *more]) or "no layouts: `%distrain form` saves one"])


def plan_run(script: str, layout: str, arguments: list[str] | None = None, name: str = "") -> str:
    """Check a run and show what it would send, as `--dry-run` does. Nothing is started.

    `script` is a file below this server's folder, `layout` the name of a saved layout. The answer
    begins with the number of the plan, for `start_run`. Show the plan to the user first.
    """
    _refuse_unless("agents_start", "start")
    _readable(layout)
    path, folder = path_named(script).resolve(), path_named(".").resolve()
    if not path.is_relative_to(folder):
        raise OptionError(f"invalid script {script!r}: expected a file below {folder}")
    if path.exists() and not path.is_file():
        raise OptionError(f"invalid script {script!r}: expected a file, not a folder or a device")
    source = api.script(path, *arguments or ())
    prepared = api.prepare(source, layout=layout, name=name, wait=False)
    prepared.refuse()
    number = keep_plan(prepared)
    return finished([f"plan {number}", str(prepared)], hint=": the user sees all by --dry-run")


def start_run(plan: int) -> str:
    """Start what `plan_run` has shown under that number, once. It may cost the user money.

    A plan of which a file has changed since is refused.
    """
    _refuse_unless("agents_start", "start")
    prepared = take_plan(plan)
    return finished([f"started {one_line(_line(api.start(prepared)))}"])


def cancel_run(run: str | int) -> str:
    """Stop a run, by its number or name."""
    _refuse_unless("agents_cancel", "cancel")
    opened = _opened(run)
    if opened.state.final:
        return finished([f"{one_line(opened.title)} has ended already: {opened.state}"])
    opened.cancel()
    return finished([f"{one_line(opened.title)} is being stopped"])


def delete_run(run: str | int) -> str:
    """Delete a run that has ended, by its number or name, with its log, metrics and results."""
    _refuse_unless("agents_delete", "delete")
    opened = _opened(run)
    api.delete(opened)
    return finished([f"{one_line(opened.title)} is deleted"])


def list_sessions() -> str:
    """List sessions, which are ranks that stay between cells: ranks, state, place, last cell, idle
    time and memory."""
    rows = session_rows(map(SessionHandle, session_folders()))
    shown = fitting([cut(row.line) for row in rows])
    return finished(shown or ["no sessions: start_session starts one"])


def start_session(layout: str, name: str = "", idle: str = staying.IDLE) -> str:
    """Start ranks that stay, by a saved layout, and wait until they are ready.

    Cells of `run_in_session` find there what earlier ones have made. Elsewhere than on the user's
    machine they hold an allocation, which may cost money: end it by `stop_session`. It ends by
    itself after the `idle` time without a cell.
    """
    _refuse_unless("agents_start", "start")
    _readable(layout)
    session = staying.start_session(name, idle, {"layout": layout})
    holds = session.file.holds
    lines = [SessionRow.of(session).line, f"it holds {holds}" if holds else ""]
    return finished([*filter(None, lines)])


def run_in_session(session: str, code: str, ranks: str = "", wait_seconds: int = 60) -> str:
    """Run Python code in the ranks of a session, as a run of its own, and show how it ended.

    `ranks` are numbers, as in 0,2; without them all ranks run it. Code that is still at work after
    `wait_seconds` goes on: `show_run` and `read_log` tell of it, `cancel_run` stops it.
    """
    _refuse_unless("agents_start", "start")
    run = api.submit(code, session=session, rank=ranks, wait=False)
    until = time.monotonic() + min(max(wait_seconds, 0), LONGEST_WAIT_S)
    while not run.state.final and time.monotonic() < until:
        time.sleep(LOOK_S)
    if not run.state.final:
        return finished([f"still at work: {one_line(_line(run))}"])
    return finished([str(answer(run, "ending", {})["text"])], run, ": read_log", from_both=True)


def stop_session(session: str) -> str:
    """End a session, by its name, with its ranks, their names and the cell that is at work."""
    _refuse_unless("agents_cancel", "cancel")
    handle = find_session(session)
    handle.stop()
    return finished([f"session {handle.name} has ended"])


READING = (
    list_runs, show_run, read_log, read_metrics, compare_runs, show_stacks, list_layouts,
    list_sessions,
)  # fmt: skip
# By the setting that allows them.
CHANGING: dict[str, tuple[str, tuple[Callable[..., str], ...]]] = {
    "agents_start": ("start", (plan_run, start_run, start_session, run_in_session)),
    "agents_cancel": ("cancel", (cancel_run, stop_session)),
    "agents_delete": ("delete", (delete_run,)),
}


def _opened(run: str | int) -> Run:
    store = Store()
    return open_run(store, str(store.get(str(run)).id))


def _refuse_unless(setting: str, verb: str) -> None:
    """Raise OptionError where the user does not allow it, now."""
    if not getattr(Config.load(), setting):
        raise OptionError(OFF.format(verb, setting))


def _readable(layout: str) -> None:
    """Raise OptionError for a layout that isn't saved."""
    if layout not in (names := readable_layouts()):
        hint = did_you_mean(layout, names, ".")
        raise OptionError(f"no layout {layout!r}{hint} Saved: {', '.join(names) or 'none yet'}")


def _line(run: Run) -> str:
    return summary_of(run).line(time.time())


def _log(run: Run, query: Query, first: int, count: int) -> LogAnswer:
    asked = {**query, "first": str(first), "count": str(count)}
    return cast("LogAnswer", answer(run, "log", asked))


def _matches(run: Run, query: Query, first: int, count: int) -> tuple[Sequence[int], str]:
    """Return the lines that match, from `first` on, or else the last ones; and how many there are.

    A search that takes long goes on with the next call.
    """
    step = -1 if first < 0 else 1
    asked = {**query, "near": str(max(first, 0)), "step": str(min(step, 0))}
    until = time.monotonic() + SEARCH_S
    state: Any = answer(run, "search", asked)
    while not state["done"] and time.monotonic() < until:
        state = answer(run, "search", asked)
    head = plural(state["total"], "match")
    if not state["done"]:
        head += f" so far ({state['searched']:.0%} of the log is searched: ask again)"
    rows: list[int] = []
    while state["row"] is not None and len(rows) < min(count, state["total"]):
        row = int(state["row"])
        if (rows and (row - rows[-1]) * step <= 0) or row < first:
            break  # behind the last match comes the first
        rows.append(row)
        state = answer(run, "search", {**query, "near": str(row), "step": str(step)})
    return rows[::step], head


def _written(run: Run, rows: Sequence[int], lines: Sequence[LineRow], complete: bool) -> list[str]:
    labels = summary_of(run).labels
    written = []
    for row, (_, _, process, _, _, text) in zip(rows, lines, strict=False):
        label = labels.get(process, str(process))
        written.append(f"{row} [{label}] {one_line(text) if complete else cut(text)}")
    return written


def _points(curve: CurveAnswer, every: bool) -> list[str]:
    name = one_line(" ".join(filter(None, (curve["run"], curve["tag"]))))
    values = ["nan" if value is None else f"{value:.6g}" for value in curve["value"]]
    if not every:
        return [f"{name}: {values[-1]} at step {curve['step'][-1]}"] if values else []
    points = zip(curve["step"], values, strict=True)
    return [f"{name}, step value", *(f"{step} {value}" for step, value in points)]


def _within(count: int) -> int:
    return min(max(count, 1), MOST_LINES)
