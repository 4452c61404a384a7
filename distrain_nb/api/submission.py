"""Starts what has been prepared."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, overload

from distrain_nb.api.keywords import with_options
from distrain_nb.api.preparation import prepare
from distrain_nb.config import WAY_OUT, Config
from distrain_nb.errors import OptionError, StoreError, warn
from distrain_nb.program import Program
from distrain_nb.run import Run, Store
from distrain_nb.run.annotation import tags_in
from distrain_nb.secrets import redacted_word
from distrain_nb.tracking import begin_run
from distrain_nb.types import R
from distrain_nb.worker.files.disk import without_waiting
from distrain_nb.worker.files.log import TROUBLES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from distrain_nb.api.keywords import Options
    from distrain_nb.api.preparation import Prepared
    from distrain_nb.api.source import Code, Source
    from distrain_nb.options import JobOptions
    from distrain_nb.run.results import Results


@overload
def submit(code: str, **options: Unpack[Options]) -> Run[Results]: ...
@overload
def submit(code: Source[R] | Callable[[], R], **options: Unpack[Options]) -> Run[R]: ...
@with_options
def submit(code: Code, **options: Unpack[Options]) -> Run:
    """Start a job; gives its run at once, or with `wait=True` when it has ended.

    `code` is source text, which finds the names of the running notebook as a cell does; a function
    without arguments (`Executor.submit` takes them), whose value `Run.result` gives; or a `Source`.
    `options` are those of `%%distrain` in Python's spelling, as in
    `submit(train, on="local", ranks_per_replica=2)`; options that may be given more than once take
    a text or a sequence of them.

    Raises OptionError, CaptureError or CheckFailed before anything is started, StoreError where no
    run can be kept, and with `wait=True` what `Run.wait` raises.
    """
    if options.get("dry_run"):
        raise OptionError("dry_run: `distrain_nb.plan` gives the request, `check` the findings")
    options["wait"] = bool(options.get("wait"))
    run = start(prepare(code, **options))
    return run.wait() if options["wait"] else run


def start(prepared: Prepared, begin: Callable[[Path], None] | None = None) -> Run:
    """Submit what has been prepared; `begin` is called with the run's folder before. Raises
    CaptureError or CheckFailed if it can't run, and StoreError where no run can be kept.

    It is on the list before anything is sent, so that whatever runs can be found and stopped.
    """
    prepared.refuse()
    if not prepared.options.session:
        return _start(prepared, begin)
    with without_waiting():
        return _start(prepared, begin)


def _start(prepared: Prepared, begin: Callable[[Path], None] | None) -> Run:
    options, backend, store = prepared.options, prepared.backend, Store()
    config = prepared.job.config
    channels = notification_channels(options, config)
    record = store.add(
        options.name,
        backend.name,
        options.experiment,
        str(prepared.job.layout),
        compared_options(options, prepared.job.program, here=backend.here),
        backend.handle(prepared.plan),
    )
    try:
        if prepared.cost:
            prepared.cost.write(record.folder)
        experiments = backend.experiments(prepared.plan)
        note = begin_run(record, config, here=backend.here, experiments=experiments)
        if note:
            warn(note)
        if begin is not None:
            begin(record.folder)
        backend.submit(prepared.plan, record.folder)
        start_notifier(record.folder, channels)
    except Exception as error:
        with suppress(StoreError):  # then it stays on the list, as one that was not started
            store.delete(record)
        if isinstance(error, OSError) and error.errno in TROUBLES:
            reason = f"{error.filename or record.folder}: {error.strerror}"
            raise StoreError(f"the run can't be started: {reason}; {WAY_OUT}") from None
        raise
    except BaseException:  # interrupted: it may have been sent
        backend.cancel(record.handle, record.folder)
        raise
    return Run(record)


def notification_channels(options: JobOptions, config: Config) -> tuple[str, ...]:
    """Return by which channels to tell of the end. Raises OptionError for one that isn't set up."""
    if not (options.notify or config.notify):
        return ()
    from distrain_nb.tracking.messages import channels  # takes long to import

    return channels(options.notify, config)


def start_notifier(folder: Path, channels: tuple[str, ...], process: str = "") -> None:
    """Tell of the end of the run that has that folder, or of what another `process` follows."""
    if channels:
        from distrain_nb.tracking import notify

        try:
            notify.begin(folder, channels, process or notify.PROCESS)
        except OSError as error:
            warn(f"no notification will be sent when the run ends: {error}")


def compared_options(
    options: JobOptions, program: Program, *, here: bool
) -> dict[str, tuple[str, ...]]:
    """Return the options by which runs are compared, without secrets: any value of `env` may be
    one. With them its tags, and the packages that the program imports, as far as the notebook has
    them; those of a run `here` with its Python."""
    python = (f"python=={platform.python_version()}",) if here else ()
    texts = {
        "args": (shlex.join(map(redacted_word, options.args)),) if options.args else (),
        "param": tuple(map(redacted_word, options.param)),
        "data": options.data,
        "require": tuple(map(redacted_word, options.require)),
        "package": (*python, *program.requirements),
        "tag": tags_in(map(redacted_word, options.tag)),
    }
    return {name: values for name, values in texts.items() if values}
