"""Makes a checked plan from code and options: all that can be done before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from distrain_nb.api.cost import cost_of, costs_text, with_limit
from distrain_nb.api.keywords import with_options
from distrain_nb.api.programs import program_of
from distrain_nb.api.source import source_of
from distrain_nb.backends.base import AnyBackend
from distrain_nb.backends.job import AnyJob, Job
from distrain_nb.backends.notebooks import idle_findings
from distrain_nb.backends.options import NoOptions, declared
from distrain_nb.backends.plan import BuildsImage, InstallsPackages, Plan
from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote.names import short_name
from distrain_nb.backends.sessions import HoldsSessions
from distrain_nb.backends.uploads import with_uploads
from distrain_nb.cluster import choose, framework_of
from distrain_nb.config import Config
from distrain_nb.errors import CaptureError, CheckFailed, OptionError
from distrain_nb.findings import Finding, errors
from distrain_nb.layout.cell_repairs import in_cell
from distrain_nb.layout.option import flag
from distrain_nb.layout.options import OPTIONS
from distrain_nb.layout.rules import check as check_layout
from distrain_nb.layout.text import changed
from distrain_nb.options import JobOptions, read
from distrain_nb.program import NO_PROGRAM, Program, working_folder
from distrain_nb.program.advice import (
    about_storage,
    findings_in,
    own_processes,
    texts_of_modules,
    told_by,
)
from distrain_nb.run.disk_usage import room_findings
from distrain_nb.run.session import SeenSession, find_session
from distrain_nb.worker.machine.environment import variables

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from distrain_nb.api.keywords import Options
    from distrain_nb.api.source import Code, Source
    from distrain_nb.backends.cost import RunCost
    from distrain_nb.layout import Layout


@dataclass(frozen=True)
class Prepared:
    """A job that has been checked: its plan, the backend that made it, and all that was found."""

    job: AnyJob
    backend: AnyBackend
    plan: Plan
    options: JobOptions
    findings: tuple[Finding, ...]
    cost: RunCost | None = None

    @property
    def waits(self) -> bool:
        """Whether the cell waits for the run's end."""
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
        cost = [] if self.cost is None else costs_text(self.cost, self.job.layout)
        installs = plan if isinstance(plan, InstallsPackages) else self.plan  # that of a trial
        packages = installs.packages if isinstance(installs, InstallsPackages) else None
        if _countable(self.job.layout) != self.job.layout:
            plan = "no plan: nothing can be sent before the errors above are repaired"
        return "\n".join([*findings, self.job.program.describe(packages), str(plan), *cost])


@with_options
def prepare(code: Code, **options: Unpack[Options]) -> Prepared:
    """Return everything up to the submission, which it leaves undone. Raises OptionError."""
    config = Config.load()
    if options.get("session"):
        return _prepare_cell(code, options, config)
    layout, job_options, backend, backend_options = read(options, config)
    _refuse_without_session(job_options)
    if job_options.export and not job_options.dry_run:
        raise OptionError(f"--as {job_options.export} shows a job: it needs --dry-run")
    if job_options.as_rank:
        backend, backend_options = find("local"), NoOptions()
        # Ranks wait for their turn, in silence.
        job_options = replace(job_options, hang_after=job_options.hang_after or "0")
    source = source_of(code)
    job_options = _with_source(job_options, source)
    waits = backend.waits_by_default if job_options.wait is None else job_options.wait
    environ = variables()
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
        as_rank=job_options.as_rank,
        steps=job_options.steps,
    )
    job = with_uploads(job, backend)
    program = program_of(source, replace(job_options, data=job.data), backend)
    job = replace(job, program=program)
    job = replace(job, machine=backend.machine(job))
    plan = backend.plan(replace(job, layout=_countable(job.layout)))
    if job_options.prove:
        _refuse_proof(job.layout, plan)
    cost = None if job.as_rank else cost_of(job_options, job, backend, plan)
    if cost and backend.here and cost.limit:
        job = with_limit(job, cost)
        plan = backend.plan(job)
    findings = (
        *program.findings,
        *(in_cell(f, layout) for f in check_layout(layout, framework=framework_of(program))),
        *(_about_program(job, backend, plan) if program.is_read else errors(plan.findings)),
    )
    return Prepared(job, backend, plan, job_options, tuple(dict.fromkeys(findings)), cost)


def _prepare_cell(code: Code, options: Options, config: Config) -> Prepared:
    """Return a cell for ranks that stay. Raises OptionError before anything is sent."""
    common = declared(JobOptions)
    for name, value in options.items():
        if name not in common and name != "timeout" and value is not None:
            written = next((o.names[0] for o in OPTIONS if o.field == name), flag(name))
            raise OptionError(
                f"{written} is for the start of a session, whose ranks are there already: leave it "
                f"out, or start another with %distrain session start {written} …",
                where=written,
            )
    job_options = read({k: v for k, v in options.items() if k != "timeout"}).job
    session = SeenSession(find_session(job_options.session).folder)
    session.check_usable()
    ranks = session.chosen(job_options.rank)
    source = source_of(code)
    job_options = _with_source(job_options, source)
    sends, keeps = (
        frozenset(name.strip() for text in texts for name in text.split(","))
        for texts in (job_options.send, job_options.keep)
    )
    at = max(0, len(source.notebook.cells) - 1)
    names = session.names(ranks, at, sends=sends, keeps=keeps)
    source = replace(source, notebook=replace(source.notebook, ranks=names))
    layout, _, backend, backend_options = read(json.loads(session.file.line), config)
    layout = changed(layout, {"timeout": options.get("timeout")})
    assert isinstance(backend, HoldsSessions)
    job: AnyJob = Job(
        program=program_of(source, job_options, backend),
        layout=layout,
        folder=working_folder(),
        options=backend_options,
        name=job_options.name,
        results=job_options.results,
        waits=job_options.wait is not False,
        config=config,
        experiment=job_options.experiment,
        data=job_options.data,
        allowed_secrets=job_options.allow_secret,
    )
    plan = backend.session_plan(job, session.folder, ranks)
    return Prepared(job, backend, plan, job_options, job.program.findings)


def _refuse_proof(layout: Layout, plan: Plan) -> None:
    """Refuse what ranks would say after their start. Raises OptionError: one rank steps on the
    batches of all, which its machine has to have."""
    if layout.size > 1:
        raise OptionError(
            f"--prove compares the ranks of one replica, and this layout has {layout.size} "
            "replicas: leave out the others, and give --ranks-per-replica 2"
        )
    if plan.ranks_per_replica < 2:
        raise OptionError("--prove compares several ranks with one: give --ranks-per-replica 2")


def _refuse_without_session(options: JobOptions) -> None:
    for name in ("rank", "send", "keep"):
        if getattr(options, name):
            raise OptionError(f"--{name} is for a cell in a session: add --in NAME")


def _about_program(job: AnyJob, backend: AnyBackend, plan: Plan) -> Iterator[Finding]:
    """Yield findings about a program that Python reads, and about the machine it is to run on."""
    yield from plan.findings
    for upload in job.uploads:
        yield from upload.findings()
    yield from _advice(job, backend, plan)
    yield from room_findings()
    is_here = backend.here or getattr(job.options, "rehearsed", False)
    # Nobody knows how long a run here takes that the cell waits for.
    if job.waits != is_here or job.layout.timeout is not None:
        yield from idle_findings(job.environ, job.layout.timeout, waits=job.waits, here=is_here)


def _advice(job: AnyJob, backend: AnyBackend, plan: Plan) -> tuple[Finding, ...]:
    """Return advice on what the program lacks; with one rank, only on how it reads its data."""
    main, segments = job.program.main, job.program.segments
    folders = backend.remote_folders(job)
    remote = (*folders, *told_by(job.program.arguments, job.program.variables, folders))
    if job.layout.size > 1 or plan.ranks_per_replica > 1:
        modules = texts_of_modules(job.program)
        # Trials add arguments, and so may a program that names sys.argv.
        has_others = job.trial is not None or "argv" in main
        passed = None if has_others else job.program.arguments
        started = own_processes(main, segments, plan.ranks_per_replica, modules, passed)
        return (*started, *findings_in(main, segments, remote))
    return about_storage(main, segments, remote) if remote else ()


def program(code: Code, include: Sequence[str] = (), require: Sequence[str] = ()) -> Program:
    """Return the program that a cell or function becomes; what is wrong is among its findings."""
    source = source_of(code)
    options = _with_source(JobOptions(include=tuple(include), require=tuple(require)), source)
    return program_of(source, options, find("local"))


@with_options
def plan(code: Code, **options: Unpack[Options]) -> Plan:
    """Return the exact request that `submit` would send. Raises OptionError."""
    prepared = prepare(code, **options)
    layout = prepared.job.layout
    if _countable(layout) != layout:
        raise OptionError(" ".join(f.message for f in errors(check_layout(layout))))
    return prepared.plan


@with_options
def check(code: Code, **options: Unpack[Options]) -> tuple[Finding, ...]:
    """Return everything that is wrong or worth knowing, without submitting. Repairs are of the
    cell's text, from its `%%distrain` line on. Raises OptionError."""
    return prepare(code, **options).findings


def _countable(layout: Layout) -> Layout:
    """Return the layout with one replica or rank wherever it has fewer: no plan can be made
    of those, and findings say so."""
    pools = {
        role.value: replace(pool, replicas=1) for role, pool in layout.pools() if pool.replicas < 1
    }
    ranks = layout.ranks_per_replica
    few = {"ranks_per_replica": 1} if ranks is not None and ranks < 1 else {}
    return layout.edited({**pools, **few})


def _with_source(options: JobOptions, source: Source) -> JobOptions:
    """Return the options with the names that the source returns, and the arguments that it has."""
    script_arguments = source.script.arguments if source.script else ()
    result, args = (*options.result, *source.returns), (*options.args, *script_arguments)
    return replace(options, result=result, args=args)
