"""The verbs for people who write Python; the magics are thin over them."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from distrain_nb.api.keywords import with_options
from distrain_nb.backends.base import AnyBackend, AnyJob, HasSDK, Job, Plan
from distrain_nb.backends.plugins import all_backends, find
from distrain_nb.cluster import framework_of
from distrain_nb.config import Config
from distrain_nb.errors import (
    CaptureError,
    CheckFailed,
    OptionError,
    RunNotFound,
    RunNotReady,
    StoreError,
    shown,
)
from distrain_nb.findings import errors
from distrain_nb.layout.options import in_cell
from distrain_nb.layout.rules import check as check_layout
from distrain_nb.options import JobOptions, read
from distrain_nb.program import (
    Cell,
    Notebook,
    Program,
    capture,
    current_notebook,
    of_function,
    working_folder,
)
from distrain_nb.program.advice import findings_in
from distrain_nb.run import Run, Store
from distrain_nb.run.results import RETURNED
from distrain_nb.secrets import HIDDEN, is_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Unpack

    from distrain_nb.api.keywords import Options
    from distrain_nb.findings import Finding
    from distrain_nb.run.pages.compare import Comparison
    from distrain_nb.run.pages.listing import RunList

MIB = 1 << 20


@dataclass(frozen=True)
class Source:
    """A cell to run, from `first_line` (1-based) on, the notebook that it stands in, and the names
    that come back without being asked for."""

    cell: Cell
    notebook: Notebook
    first_line: int = 1
    returns: tuple[str, ...] = ()


Code: TypeAlias = "str | Callable[..., Any] | Source"


@dataclass(frozen=True)
class Prepared:
    """A job that has been checked: its plan, the backend that made it, and all that was found."""

    job: AnyJob
    backend: AnyBackend
    plan: Plan
    options: JobOptions
    findings: tuple[Finding, ...]

    @property
    def waits(self) -> bool:
        return self.job.waits

    def refuse(self) -> None:
        """Raises CaptureError or CheckFailed if it can't run."""
        broken = errors(self.job.program.findings)
        if broken:
            raise CaptureError(broken)
        if errors(self.findings):
            raise CheckFailed(errors(self.findings))

    def __str__(self) -> str:
        other = [str(f) for f in self.findings if f not in self.job.program.findings]
        return "\n".join([*other, self.job.program.describe(), str(self.plan)])


@with_options
def prepare(code: Code, **options: Unpack[Options]) -> Prepared:
    """Everything up to the submission, which it leaves undone. Raises OptionError."""
    config = Config.load()
    layout, job_options, backend, own = read(options, config)
    source = _source(code)
    job_options = replace(job_options, result=(*job_options.result, *source.returns))
    waits = backend.waits_by_default if job_options.wait is None else job_options.wait
    program = _program(source, job_options, backend)
    environ = dict(os.environ)
    job = Job(
        program=program,
        layout=layout,
        folder=working_folder(),
        options=own,
        name=job_options.name,
        results=job_options.results,
        waits=waits,
        config=config,
        experiment=job_options.experiment,
        data=job_options.data,
        allowed_secrets=job_options.allow_secret,
        environ=environ,
        defaults=backend.defaults(environ),
    )
    plan = backend.plan(job)
    several = layout.size > 1 or plan.ranks_per_replica > 1  # one rank's code needs no advice
    advice = findings_in(program.main, program.segments, gpus=plan.gpus > 0) if several else ()
    findings = (
        *program.findings,
        *(in_cell(f, layout) for f in check_layout(layout, framework=framework_of(program))),
        *plan.findings,
        *advice,
    )
    return Prepared(job, backend, plan, job_options, tuple(dict.fromkeys(findings)))


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


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Source:
    """The call of a function with arguments, which travel as the notebook's values do, as code for
    `submit`, `plan` and `check`. Raises OptionError for what has no name in a module."""
    return Source(*of_function(function, *args, **kwargs), returns=(RETURNED,))


def start(prepared: Prepared) -> Run:
    """Submit what has been prepared. Raises CaptureError or CheckFailed if it can't run, and
    StoreError where no run can be kept.

    It is on the list before anything is sent, so that whatever runs can be found and stopped.
    """
    prepared.refuse()
    options, backend, store = prepared.options, prepared.backend, Store()
    record = store.add(
        options.name,
        backend.name,
        options.experiment,
        str(prepared.job.layout),
        _compared_options(options),
        backend.handle(prepared.plan),
    )
    try:
        backend.submit(prepared.plan, record.folder)
    except Exception:
        with suppress(StoreError):  # then it stays on the list, as one that was not started
            store.delete(record)
        raise
    except BaseException:  # interrupted: it may have been sent
        backend.cancel(dict(record.handle), record.folder)
        raise
    return Run(record)


def program(code: Code, include: Sequence[str] = (), require: Sequence[str] = ()) -> Program:
    """The program that a cell or function becomes; what is wrong is among its findings."""
    options = JobOptions(include=tuple(include), require=tuple(require))
    return _program(_source(code), options, find("local"))


@with_options
def plan(code: Code, **options: Unpack[Options]) -> Plan:
    """The exact request that `submit` would send. Raises OptionError."""
    return prepare(code, **options).plan


@with_options
def check(code: Code, **options: Unpack[Options]) -> tuple[Finding, ...]:
    """Everything that is wrong or worth knowing, without submitting. Repairs are of the cell's
    text, from its `%%distrain` line on. Raises OptionError."""
    return prepare(code, **options).findings


def runs() -> RunList:
    """All runs, the newest first: a list, whose `frame` is a DataFrame."""
    from distrain_nb.run.pages.listing import RunList  # what reads metrics imports NumPy

    return RunList(Run(record) for record in Store().all())


def compare(*runs: Run | str | int) -> Comparison:
    """Runs side by side, given as such or by number or name; `frame` is a DataFrame.

    Raises RunNotFound, or OptionError for fewer than two.
    """
    from distrain_nb.run.pages.compare import compare as side_by_side

    return side_by_side(run if isinstance(run, Run) else attach(run) for run in runs)


def attach(run: object = "last") -> Run:
    """The run of that number or name, whoever started it; or of a job of a cloud's own SDK.

    Such a job is an `aiplatform.CustomJob`, a training job (pipeline), SageMaker's
    `sagemaker.core.resources.TrainingJob`, or its resource name or ARN. One that is on no list yet
    becomes a run: with the job's state, log and links, and `cancel`. Not there is what only our
    worker writes: `results`, `resources`, lines by rank, and metrics but for those that SageMaker's
    metric definitions find in the log.

    Raises RunNotFound for another name, OptionError for another object, StoreError.
    """
    if isinstance(run, str | int):
        try:
            return Run(Store().get(str(run)))
        except RunNotFound:
            if "/" not in str(run):
                raise
    for backend in all_backends():
        if not isinstance(backend, HasSDK):
            continue
        foreign = backend.foreign(run)
        if foreign is not None:
            return _followed(backend, run, foreign.job.rpartition("/")[2])
    if isinstance(run, str):
        raise RunNotFound(f"no run {run!r}, and no job of a cloud is called so")
    raise OptionError(f"{shown(run)} is neither a run's number or name nor a cloud's training job")


def _followed(backend: HasSDK, job: object, title: str) -> Run:
    """The run that is that job; a new one if there is none."""
    store = Store()
    for record in store.all():
        with suppress(OSError, ValueError, KeyError, TypeError):  # another's folder may be damaged
            if record.backend == backend.name and backend.stands_for(job, record.folder):
                return Run(record)
    title = f"job-{title}" if title.isdecimal() else title
    record = store.add(title, backend.name, "", f"--on {backend.name}")
    backend.follow(job, record.folder)
    return Run(record)


def _compared_options(options: JobOptions) -> dict[str, tuple[str, ...]]:
    """By which runs are compared, but for secrets. Not `env`: its values may all be some."""
    texts = {
        "args": (shlex.join(map(_without_secret, options.args)),) if options.args else (),
        "param": tuple(map(_without_secret, options.param)),
        "data": options.data,
        "require": options.require,
    }
    return {name: values for name, values in texts.items() if values}


def _without_secret(text: str) -> str:
    """A NAME=VALUE text, or an argument such as `--name=VALUE`, as it may be shown."""
    name, equals, value = text.partition("=")
    if not equals:
        return HIDDEN if is_secret("", text) else text
    return f"{name}={HIDDEN}" if is_secret(name.strip("-").replace("-", "_"), value) else text


def _source(code: Code) -> Source:
    if isinstance(code, Source):
        return code
    if callable(code):
        return call(code)
    here = current_notebook() or Notebook({}, (), working_folder())
    return Source(Cell("submit()", code), here)


def _program(source: Source, options: JobOptions, backend: AnyBackend) -> Program:
    given = {**source.notebook.given, **options.given(backend.data)}
    optional = options.brought(backend.brings)
    program = capture(
        source.cell,
        source.first_line,
        replace(source.notebook, given=given, optional=optional),
        include=options.include,
        require=options.require,
        limit=int(Config.load().carry_limit * MIB),
        results=options.results,
        for_image=backend.has_image,
    )
    return replace(program, arguments=options.args)


def delete(run: Run) -> None:
    """Remove the files of a run that has ended, or that can't be read, and forget it.

    Raises RunNotReady if it has not ended, StoreError if its files can't be removed.
    """
    if not run.may_be_deleted:
        raise RunNotReady(f"run {run.id} is {run.state}: cancel it first")
    Store().delete(run.record)
