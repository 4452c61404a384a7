"""`%%distrain --tune` and `%distrain tune`: studies are started, shown and looked after."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError, RunUnreadable
from distrain_nb.run.summary import plural
from distrain_nb.saved.study_table import studies_text
from distrain_nb.study import Study, find_study, studies
from distrain_nb.study.listing import delete
from distrain_nb.study.starting import prepare, start
from distrain_nb.tuning.formats import form_of
from distrain_nb.ui.study_monitor import StudyMonitor, study_display

if TYPE_CHECKING:
    from distrain_nb.api import Prepared, Source

WAIT_S = 0.1


def submit_study(
    source: Source,
    options: Mapping[str, Any],
    working: Callable[[], AbstractContextManager[None]],
    warn: Callable[[Prepared, Source], None],
) -> None:
    """Check it, start it and show it; `working` shows what takes long, `warn` the warnings.

    Raises what `study.tune` and `Study.wait` raise.
    """
    with working():
        prepared = prepare(source, **options)
    if prepared.prepared.options.dry_run:
        print(prepared)
        return
    for finding in prepared.findings:
        print(finding)
    warn(prepared.prepared, source)
    with working():
        study = start(prepared)
    watch_study(study, prepared.waits)


def watch_study(study: Study, waits: bool) -> None:
    """Show it below the cell; with `waits`, to its end. An interrupt stops the study."""
    monitor = StudyMonitor(study)
    if not waits:
        monitor.show()
        monitor.follow()
        return
    try:
        monitor.show()
        monitor.wait()
    except KeyboardInterrupt:
        study.cancel()
        while not study.state.final:
            time.sleep(WAIT_S)
        monitor.wait()
    study.check()


def tune_verb(options: argparse.Namespace) -> Any:
    """Run `%distrain tune`. Raises OptionError, StudyNotFound."""
    actions = (options.trials, options.form, options.stop is not None, options.delete)
    if options.study is None:
        if any(actions):
            raise OptionError("no study named: expected its number or name, or last")
        print(studies_text(studies()))
        return None
    study = find_study(options.study)
    if sum(map(bool, actions)) > 1:
        raise OptionError("--trials, --stop, --delete and --as contradict each other")
    if options.form:
        _print_as(study, options.form)
        return None
    if options.delete:
        _delete(study)
        return None
    if options.trials:
        study.more(_more(options.trials))
    elif options.stop == "study":
        study.cancel()
        print(f"{study.title} is being stopped")
    elif options.stop is not None:
        _stop_trial(study, options.stop)
    else:
        return study_display(study)
    if options.trials:
        watch_study(study, waits=False)
    return None


def _delete(study: Study) -> None:
    message = f"{study.title} is deleted"
    with suppress(RunUnreadable):
        message += f", with {plural(len(study.all_trials()), 'trial')}"
    delete(study)
    print(message)


def _print_as(study: Study, name: str) -> None:
    form = form_of(name)
    print(form.text(study.spec), end="")
    if lost := form.left_out(study.spec):
        print(f"Left out, as {form.title} has no place for it: {', '.join(lost)}", file=sys.stderr)


def _more(text: str) -> int:
    if not text.startswith("+") or not text[1:].isdecimal():
        raise OptionError(
            f"invalid --trials {text!r}: expected +N, the number of trials to add, such as +10"
        )
    return int(text[1:])


def _stop_trial(study: Study, text: str) -> None:
    try:
        study.stop(int(text))
    except (ValueError, KeyError):
        numbers = f"1 to {len(study.all_trials())}"
        raise OptionError(f"invalid --stop {text!r}: the study has trials {numbers}") from None
    print(f"trial {text} of {study.title} is being stopped")
