"""From code and options to a study: it is prepared as one job, which each trial then varies."""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from distrain_nb import api
from distrain_nb.api.keywords import with_study_options
from distrain_nb.api.submission import compared_options, notification_channels, start_notifier
from distrain_nb.backends.tuning import STUDY_ONLY
from distrain_nb.errors import OptionError, warn
from distrain_nb.findings import Finding
from distrain_nb.options import read
from distrain_nb.program import Program
from distrain_nb.program.python.scopes import bound_names
from distrain_nb.study.cost import costs_text
from distrain_nb.study.files import StudyFile
from distrain_nb.study.listing import new_folder, new_key
from distrain_nb.study.processes import NOTICES, start_process
from distrain_nb.study.service import service_of, tuning_service
from distrain_nb.study.spec_reading import check_here, check_study, take_spec
from distrain_nb.study.study import Study
from distrain_nb.tracking import begin_study
from distrain_nb.tuning import options as study_options
from distrain_nb.tuning.choosing import choose
from distrain_nb.tuning.spec import Categorical, Discrete, Integer, Parameter, StudySpec, Value
from distrain_nb.worker.files.status import Owner

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from distrain_nb.api import Code, Prepared
    from distrain_nb.api.keywords import StudyOptions
    from distrain_nb.backends.cost import RunCost
    from distrain_nb.backends.tuning import StartsTrials, StudyPlan, Tunes

# Of these, one that is imported says that the program reads its arguments.
_READERS = frozenset(
    ["absl", "argparse", "click", "docopt", "fire", "hydra", "jsonargparse", "optparse",
     "simple_parsing", "transformers", "typer", "tyro"]
)  # fmt: skip


@dataclass(frozen=True)
class PreparedStudy:
    """A study that has been checked, and the job that each of its trials varies.

    `plan` is what a service that tunes is to be sent, `cost` what the study is to know of its cost;
    `devices` is what each of the trials that run
    at once has of the place where they don't share all of it, such as its GPUs.
    """

    spec: StudySpec
    prepared: Prepared
    findings: tuple[Finding, ...]
    plan: StudyPlan | None = None
    cost: RunCost | None = None
    devices: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        return self.prepared.waits

    def refuse(self) -> None:
        """Raise CaptureError or CheckFailed if it can't run."""
        self.prepared.refuse()

    def __str__(self) -> str:
        shown = [*map(str, self.findings), *study_options.printed(self.spec)]
        job, here = self.prepared.job, self.prepared.backend.here
        text = str(self.prepared) if self.plan is None else self.prepared.shown(self.plan)
        cost = [costs_text(self.cost, job.layout, self.spec, here=here)] if self.cost else []
        return "\n".join([*shown, text, *cost])


@with_study_options
def tune(code: Code, spec: StudySpec | None = None, **options: Unpack[StudyOptions]) -> Study:
    """Start a study: runs of the same code with other values of its parameters.

        study = distrain_nb.tune(train, tune=["lr=1e-5..1e-1:log", "width=16|32|64"],
                                 goal="min:val/loss", trials=20, parallel=2)
        study.wait().best.params

    `code` is as in `submit`. The study's options are those of `%%distrain`: `tune` (a text or
    several), `goal`, `trials`, `parallel`, `search`, `stop`, `max_failed`, `initial`,
    `measurement`, `noise`, `end`; they change `study`, a file, or a whole `spec`. All others are
    those of a job, as in `submit`. Parameters are names that the code reads, or arguments that
    it parses.

    Gives the study at once, or with `wait=True` when it has ended. Raises OptionError, CaptureError
    or CheckFailed before anything is started, DistrainError where Optuna is missing, StoreError.
    """
    if options.get("dry_run"):
        raise OptionError("dry_run: `print(distrain_nb.study.prepare(...))` shows a study")
    options["wait"] = bool(options.get("wait"))
    study = start(prepare(code, spec, **options))
    return study.wait() if options["wait"] else study


def prepare(code: Code, spec: StudySpec | None = None, **options: object) -> PreparedStudy:
    """Return everything up to the first trial. Raises OptionError, CheckFailed for a spec that
    can't be, DistrainError."""
    if options.get("as_rank"):
        raise OptionError("--as-rank runs ranks of one job alone, and a study has many jobs")
    file = options.get("study")
    spec, written = take_spec(spec, options)
    place = read(options).layout.on
    service = service_of(place)
    if service and options.get("max_cost"):
        raise OptionError(
            f"--max-cost isn't kept for a study whose trials {service.title} starts; limit it by "
            "--trials and --timeout"
        )
    findings = check_study(spec, place, file, written=written)
    if service is None:
        check_here(spec)
    values = _placeholders(spec)
    params = options.get("param")
    several = params if isinstance(params, (list, tuple)) else [params] if params else []
    texts = list(map(str, several))
    _refuse_both(texts, values)
    source = api.source_of(code)
    if source.script is None:  # which reads no names
        options["param"] = [*texts, *(f"{name}={value!r}" for name, value in values.items())]
    prepared = api.prepare(source, **options)  # type: ignore[arg-type]
    cost = prepared.cost
    prepared = replace(
        prepared,
        options=replace(prepared.options, param=tuple(texts)),
        findings=tuple(f for f in prepared.findings if not _is_about(f, values)),
        cost=None,
    )
    program = _tuned(prepared.job.program, spec, values)
    job = replace(prepared.job, program=program, cost_limit=(None, ""))  # the study has one
    if service is None:
        study = _of_trials(replace(prepared, job=job), spec, findings)
    else:
        planned = replace(prepared, job=job, plan=prepared.backend.plan(job))
        study = _of_service(service, planned, spec, findings)
    return replace(study, cost=cost)


def _of_service(
    service: Tunes, prepared: Prepared, spec: StudySpec, findings: tuple[Finding, ...]
) -> PreparedStudy:
    plan = service.plan_study(prepared.plan, spec)
    general = (finding for finding in prepared.findings if not finding.code.endswith(STUDY_ONLY))
    prepared = replace(prepared, findings=(*general, *plan.findings))
    return PreparedStudy(spec, prepared, findings, plan)


def _of_trials(prepared: Prepared, spec: StudySpec, findings: tuple[Finding, ...]) -> PreparedStudy:
    """Return the job of any trial: it knows its number, and has its share of the place."""
    backend = cast("StartsTrials", prepared.backend)
    job, devices = backend.trial_job(prepared.job, spec.parallel)
    varied = replace(prepared, job=job, plan=prepared.backend.plan(job))
    return PreparedStudy(spec, varied, findings, devices=devices)


def start(prepared: PreparedStudy) -> Study:
    """Start what has been prepared. Raises CaptureError or CheckFailed if it can't run."""
    prepared.refuse()
    channels = notification_channels(prepared.prepared.options, prepared.prepared.job.config)
    with new_folder() as (number, folder):
        file = replace(_study_file(prepared, number), notify=channels)
        _mirror(file, folder, here=prepared.prepared.backend.here)
        _lay_down(prepared, file, folder)
        if prepared.cost:
            prepared.cost.write(folder)
        file.write(folder)
    start_process(folder)
    start_notifier(folder, channels, NOTICES)
    return Study(folder)


def _lay_down(prepared: PreparedStudy, file: StudyFile, folder: Path) -> None:
    """Write what the study's process needs besides `StudyFile`."""
    if prepared.plan is not None:
        tuning_service(file.backend).submit_study(prepared.plan, folder)
        return
    backend = cast("StartsTrials", prepared.prepared.backend)
    backend.write_trials(prepared.prepared.plan, folder)


def _study_file(prepared: PreparedStudy, number: int) -> StudyFile:
    job = prepared.prepared
    options, backend = job.options, job.backend
    compared = compared_options(options, job.job.program, here=backend.here)
    return StudyFile(
        id=number,
        name=options.name or f"study-{number}",
        key=new_key(),
        created=time.time(),
        spec=dict(study_options.texts(prepared.spec)),
        line=str(job.job.layout),
        experiment=options.experiment,
        options={name: list(texts) for name, texts in compared.items()},
        devices=prepared.devices,
        idle=job.job.config.idle,
        kernel=Owner.of(os.getpid()) if prepared.waits else None,
        backend=backend.name,
        handle=dict(backend.handle(job.plan)),
        python=sys.executable,
        experiments=backend.experiments(job.plan),
    )


def _mirror(file: StudyFile, folder: Path, *, here: bool) -> None:
    """Mirror the study to a tracker, if one is set; `here` for trials on this machine."""
    texts = study_options.texts(file.parsed)
    parameters = {
        n: text if isinstance(text, str) else ", ".join(text) for n, text in texts.items()
    }
    experiments = file.experiments
    note = begin_study(
        folder,
        file.name,
        file.created,
        file.experiment,
        parameters,
        here=here,
        experiments=experiments,
    )
    if note:
        warn(note)


def _placeholders(spec: StudySpec) -> dict[str, Value | None]:
    """Return a value for each name, as the program has it before a trial gives it one of its own;
    None for those that not all trials have."""
    always = choose(spec, _typical)
    return {
        p.name: always.get(p.name) if p.condition is None else None
        for p in spec.parameters
        if p.name.isidentifier()
    }


def _typical(parameter: Parameter) -> Value:
    domain = parameter.domain
    if domain.default is not None:
        return parameter.native(domain.default)
    listed = isinstance(domain, (Discrete, Categorical))
    return parameter.native(domain.values[0] if listed else domain.low)  # type: ignore[union-attr]


def _refuse_both(texts: list[str], values: Mapping[str, object]) -> None:
    for text in texts:
        name = text.partition("=")[0]
        if name in values:
            raise OptionError(f"--param {text}: trials give {name} its values, by --tune")


def _tuned(program: Program, spec: StudySpec, values: Mapping[str, object]) -> Program:
    """Return the program, which knows the names that trials give values. Raises OptionError for one
    that it has no use for."""
    read = {value.name for value in program.values} & values.keys()
    kinds = {p.name: _kind(p) for p in spec.parameters if p.name in read}
    takes_arguments = bool(program.imports & _READERS) or "argv" in program.main
    unused = [p.name for p in spec.parameters if p.name not in read]
    if unused and not takes_arguments:
        name = unused[0]
        why = f"the cell never reads the name {name}, and no arguments"
        if statement := _setting(program.main, name):
            why = f"the cell sets {name} itself, by `{statement}`: leave that line out"
        raise OptionError(f"--tune {name}: {why}", where=name)
    findings = tuple(f for f in program.findings if not _is_about(f, values))
    return replace(program, tuned=kinds, findings=findings)


def _setting(text: str, name: str) -> str:
    """Return the first line of the statement of a program that sets a name; empty without one."""
    for statement in ast.parse(text).body:
        if name in bound_names([statement]):
            return ast.unparse(statement).partition("\n")[0]
    return ""


def _is_about(finding: Finding, values: Mapping[str, object]) -> bool:
    """Return whether a finding is about a tuned name that isn't read: it may reach the program as
    an argument."""
    return finding.code == "capture.unused-name" and finding.where in values


def _kind(parameter: Parameter) -> str:
    if isinstance(parameter.domain, Categorical):
        return "str"
    integer = isinstance(parameter.domain, (Integer, Discrete))
    return "int" if integer and isinstance(_typical(parameter), int) else "float"
