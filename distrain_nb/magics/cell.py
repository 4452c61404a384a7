"""`%%distrain`: a cell is submitted, and seen to its end where it is waited for."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb import api
from distrain_nb.errors import OptionError, RunFailed
from distrain_nb.findings import Severity
from distrain_nb.magics.command_line import (
    cell_options,
)
from distrain_nb.magics.help import show_help
from distrain_nb.program import Cell
from distrain_nb.program.notebook.cells import label, notebook_of
from distrain_nb.program.progress import report_to
from distrain_nb.repairs import head_lines
from distrain_nb.tuning.options import PARTS, STUDY
from distrain_nb.ui.frontend import can_answer
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from distrain_nb.magics.prompts import Attendant
    from distrain_nb.run import Run
    from distrain_nb.ui.monitor import Monitor

REFRESH_EVERY_S = 0.05
LONG_S = 1.0


def run_cell(words: list[str], line: str, cell: str, shell: InteractiveShell) -> None:
    """Raise what `api.start` and, for a cell that waits, `Run.wait` raise."""
    if show_help(words):
        return
    options, source = cell_options(words), source_of(line, cell, shell)
    if not "".join(source.cell.source.split("\n")[source.first_line - 1 :]).strip():
        raise OptionError(
            "the cell has no code: write what the ranks run below this line; a script is run by "
            "%distrain run FILE"
        )
    submit(source, options)


def submit(source: api.Source, options: Mapping[str, Any]) -> None:
    """Check it, start it and show it. Raises what `api.start` and `Run.wait` raise."""
    if {STUDY.field, *PARTS} & options.keys():
        from distrain_nb.magics.studies import submit_study

        submit_study(source, options, show_long_work, _show_warnings)
        return
    with show_long_work():
        prepared = api.prepare(source, **options)
    if prepared.options.dry_run:
        print(prepared)
        return
    _show_warnings(prepared, source)
    asks = prepared.waits and prepared.backend.asks
    with show_long_work():
        run = api.start(prepared, attend if asks else None)
    watch(run, prepared.waits)


@contextmanager
def show_long_work() -> Iterator[None]:
    """Show a progress bar below the cell once the block takes long. Import its code only then."""
    begun, bar = time.time(), None

    def hear(progress: Progress) -> None:
        nonlocal bar
        if bar is None and time.time() > begun + LONG_S:
            from distrain_nb.ui.work import work_bar

            bar = work_bar(begun)
        if bar is not None:
            bar(progress)

    try:
        with report_to(hear):
            yield
    finally:
        if bar is not None:
            bar.clear()


def source_of(line: str, cell: str, shell: InteractiveShell) -> api.Source:
    """Return the cell that is running, in its notebook."""
    name = label(len(shell.history_manager.input_hist_raw) - 1)
    text = f"%%distrain {line}\n{cell}"
    return api.Source(Cell(name, text), notebook_of(shell), first_line=head_lines(text) + 1)


def attend(folder: Path) -> None:
    """Have the ranks of a run know whether somebody can answer, before they may ask."""
    prompts.listen(folder, answers=can_answer())


def watch(run: Run, waits: bool) -> None:
    """Show the run below the cell; with `waits`, until it has ended. An interrupt cancels it."""
    if not waits:
        _shown(run).follow()
        return
    monitor = None
    try:
        monitor = _shown(run)
        _wait(run, monitor)
    except KeyboardInterrupt:
        run.cancel()
        while not run.state.final:
            time.sleep(REFRESH_EVERY_S)
    finally:
        prompts.end_listening(run.folder)
    shown = monitor is not None and _succeeds(monitor.finish) and monitor.shows_report
    _raise_outcome(run, shown)


def _shown(run: Run) -> Monitor:
    from distrain_nb.ui.monitor import Monitor

    monitor = Monitor(run)
    monitor.show()
    return monitor


def _wait(run: Run, monitor: Monitor) -> None:
    """Wait until the run has ended, and ask what it asks; go on without a view that breaks."""
    is_shown = True

    def refresh() -> None:
        nonlocal is_shown
        is_shown = is_shown and _succeeds(monitor.refresh)

    attendant: Attendant | None = None
    while not run.state.final:
        refresh()
        if attendant is None and prompts.open_prompts(run.folder):
            from distrain_nb.magics.prompts import Attendant

            # In a terminal the view would write where the answer is being typed.
            attendant = Attendant(run, refresh if monitor.shows_report else lambda: None)
        if attendant is not None:
            attendant.turn()
        time.sleep(REFRESH_EVERY_S)
    if attendant is not None:
        attendant.turn()


def _raise_outcome(run: Run, shown: bool) -> None:
    """Raise the run's error: in one line if the view above shows the report, else with it."""
    try:
        run.check()
    except RunFailed as failed:
        if shown:
            from distrain_nb.saved.tracebacks import report_line

            raise RunFailed(report_line(str(failed))) from None
        raise


def _succeeds(update: Callable[[], None]) -> bool:
    try:
        update()
    except Exception:
        traceback.print_exc()
        print("The view of the run failed; the run itself continues.", file=sys.stderr)
        return False
    return True


def _show_warnings(prepared: api.Prepared, source: api.Source) -> None:
    fs = [f for f in prepared.findings if f.severity is Severity.WARNING]
    if fs:
        from distrain_nb.ui.problem import Cells
        from distrain_nb.ui.problem_panel import show_warnings

        cells = {cell.label: cell.source for cell in source.notebook.cells}
        show_warnings(fs, Cells(source.cell.source, source.cell.label, cells))
