"""Makes a checked plan from code and options: all that can be done before anything is sent."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from distrain_nb.api.keywords import with_options
from distrain_nb.api.named_data import CHANNEL, about_unread, named_in, variables, with_places
from distrain_nb.api.source import source_of
from distrain_nb.api.surroundings import about_machine
from distrain_nb.api.uploads import with_uploads
from distrain_nb.backends.base import AnyBackend, AnyJob, BuildsImage, Job, Plan
from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote.naming import short_name
from distrain_nb.cluster import choose, framework_of
from distrain_nb.config import Config
from distrain_nb.errors import CaptureError, CheckFailed, OptionError
from distrain_nb.findings import errors
from distrain_nb.layout.options import in_cell
from distrain_nb.layout.rules import check as check_layout
from distrain_nb.options import JobOptions, read
from distrain_nb.program import NO_PROGRAM, Program, capture, capture_script, working_folder
from distrain_nb.program.advice import (
    about_storage,
    findings_in,
    own_processes,
    texts_of_modules,
    told_by,
    unread_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Unpack

    from distrain_nb.api.keywords import Options
    from distrain_nb.api.source import Code, Source
    from distrain_nb.findings import Finding
    from distrain_nb.program import Script

MIB = 1 << 20


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
        """Raise CaptureError or CheckFailed if it can't run."""
        broken = errors(self.job.program.findings)
        if broken:
            raise CaptureError(broken)
        if errors(self.findings):
            raise CheckFailed(errors(self.findings))

    def __str__(self) -> str:
        return self.exported() if self.options.export else self.shown(self.plan)

    def exported(self) -> str:
        """Return the layout in the form of `--as`, with the job's image, ranks and launcher, below
        the findings as comments. Raises OptionError."""
        from distrain_nb.layout.formats import exported

        layout, name = self.job.layout, self.options.export
        changes: dict[str, object] = {"ranks_per_replica": self.plan.ranks_per_replica}
        if layout.launcher == "auto":
            changes["launcher"] = choose(self.job.program)[0]
        if isinstance(self.plan, BuildsImage) and not layout.image:
            changes["image"] = self.plan.target()
        text = exported(layout.edited(changes), name, short_name(self.job.name))
        findings = [f for f in self.findings if f not in self.job.program.findings]
        return "".join(f"# {line}\n" for f in findings for line in str(f).splitlines()) + text

    def shown(self, plan: object) -> str:
        """Return the text of `--dry-run`, with that plan."""
        findings = [str(f) for f in self.findings if f not in self.job.program.findings]
        return "\n".join([*findings, self.job.program.describe(), str(plan)])


@with_options
def prepare(code: Code, **options: Unpack[Options]) -> Prepared:
    """Return everything up to the submission, which it leaves undone. Raises OptionError."""
    config = Config.load()
    layout, job_options, backend, backend_options = read(options, config)
    if job_options.export and not job_options.dry_run:
        raise OptionError(f"--as {job_options.export} shows a job: it needs --dry-run")
    source = source_of(code)
    job_options = _with_source(job_options, source)
    waits = backend.waits_by_default if job_options.wait is None else job_options.wait
    environ = dict(os.environ)
    job: AnyJob = Job(
        program=NO_PROGRAM,
        layout=layout,
        folder=working_folder(),
        options=backend_options,
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
    job = with_uploads(job, backend)
    program = _program(source, replace(job_options, data=job.data), backend)
    job = replace(job, program=program)
    job = replace(job, machine=backend.machine(job))
    plan = backend.plan(job)
    findings = (
        *program.findings,
        *(in_cell(f, layout) for f in check_layout(layout, framework=framework_of(program))),
        *(_about_program(job, backend, plan) if program.is_read else errors(plan.findings)),
    )
    return Prepared(job, backend, plan, job_options, tuple(dict.fromkeys(findings)))


def _about_program(job: AnyJob, backend: AnyBackend, plan: Plan) -> Iterator[Finding]:
    """Yield findings about a program that Python reads, and about the machine it is to run on."""
    yield from plan.findings
    for upload in job.uploads:
        yield from upload.findings()
    yield from _advice(job, backend, plan)
    yield from about_machine(job, backend)


def _advice(job: AnyJob, backend: AnyBackend, plan: Plan) -> tuple[Finding, ...]:
    """Return advice on what the program lacks; with one rank, only on how it reads its data."""
    main, segments = job.program.main, job.program.segments
    folders = backend.remote_folders(job)
    remote = (*folders, *told_by(job.program.arguments, job.program.variables, folders))
    if job.layout.size > 1 or plan.ranks_per_replica > 1:
        modules = texts_of_modules(job.program)
        started = own_processes(main, segments, plan.ranks_per_replica, modules)
        return (*started, *findings_in(main, segments, gpus=plan.gpus > 0, remote=remote))
    return about_storage(main, segments, remote) if remote else ()


def program(code: Code, include: Sequence[str] = (), require: Sequence[str] = ()) -> Program:
    """Return the program that a cell or function becomes; what is wrong is among its findings."""
    source = source_of(code)
    options = _with_source(JobOptions(include=tuple(include), require=tuple(require)), source)
    return _program(source, options, find("local"))


@with_options
def plan(code: Code, **options: Unpack[Options]) -> Plan:
    """Return the exact request that `submit` would send. Raises OptionError."""
    return prepare(code, **options).plan


@with_options
def check(code: Code, **options: Unpack[Options]) -> tuple[Finding, ...]:
    """Return everything that is wrong or worth knowing, without submitting. Repairs are of the
    cell's text, from its `%%distrain` line on. Raises OptionError."""
    return prepare(code, **options).findings


def _with_source(options: JobOptions, source: Source) -> JobOptions:
    """Return the options with the names that the source returns, and the arguments that it has."""
    script_arguments = source.script.arguments if source.script else ()
    result, args = (*options.result, *source.returns), (*options.args, *script_arguments)
    return replace(options, result=result, args=args)


def _program(source: Source, options: JobOptions, backend: AnyBackend) -> Program:
    """Make the program from its source. Its arguments are the options', after a script's own."""
    limit = int(Config.load().carry_limit * MIB)
    places = options.places(backend.data)
    program = (
        _of_cell(source, options, limit, backend)
        if source.script is None
        else _of_script(source.script, options, limit, backend)
    )
    unread = unread_arguments(program, options.args) if program.is_read else ()
    return replace(
        program,
        arguments=with_places(options.args, places),
        variables=variables(options, places, backend) | options.of_doctor,
        findings=(*program.findings, *unread),
    )


def _of_cell(source: Source, options: JobOptions, limit: int, backend: AnyBackend) -> Program:
    if options.exclude:
        raise OptionError("--exclude is for scripts: a cell sends only the files that it needs")
    variables_of_cell = {**source.notebook.given, **options.given(backend.data)}
    otherwise_read = options.brought(backend.brings) | named_in(options.args)
    if CHANNEL in source.cell.source:
        otherwise_read |= options.places(backend.data).keys()
    return capture(
        source.cell,
        source.first_line,
        replace(source.notebook, given=variables_of_cell, optional=otherwise_read),
        include=options.include,
        require=options.require,
        limit=limit,
        results=options.results,
        for_image=backend.has_image,
    )


def _of_script(script: Script, options: JobOptions, limit: int, backend: AnyBackend) -> Program:
    if options.param:
        raise OptionError(
            f"--param {options.param[0]} sets a name that a cell reads, and a script reads "
            f"arguments: write them behind {script.path.name}"
        )
    program = capture_script(
        script,
        include=options.include,
        exclude=options.exclude,
        require=options.require,
        limit=limit,
        for_image=backend.has_image,
    )
    names = options.places(backend.data).keys() - options.brought(backend.brings)
    unread = about_unread(program, options.args, sorted(names))
    return replace(program, findings=(*program.findings, *unread))
