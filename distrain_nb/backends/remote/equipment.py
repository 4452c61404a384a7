"""What a job brings into the choice of its image, whatever the cloud."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.backends.base import named
from distrain_nb.cluster.packages import Uses
from distrain_nb.program.frameworks import KERAS_BACKEND, frameworks_of

if TYPE_CHECKING:
    from distrain_nb.backends.base import Job
    from distrain_nb.backends.remote.options import RemoteOptions
    from distrain_nb.cluster.equipment import Equipment

# What `machine` of a backend calls the date, in ISO form.
TODAY = "today"

OptionsT = TypeVar("OptionsT", bound="RemoteOptions")


def uses_of(job: Job[RemoteOptions]) -> Uses:
    """What the program needs, by what it imports and by the framework that the layout names."""
    program, layout = job.program, job.layout
    variables = {**program.variables, **dict(named(job.options.env))}
    keras = {variables[KERAS_BACKEND]} if KERAS_BACKEND in variables else set()
    imports = program.imports | keras if "keras" in program.imports else program.imports
    chosen = layout.framework_name
    return Uses(
        frameworks_of(imports) or ((chosen,) if chosen else ()),
        imports,
        program.requirements,
        program.required,
        chosen,
        layout.framework_version,
    )


def equipped(job: Job[OptionsT], equipment: Equipment) -> Job[OptionsT]:
    """Return the job with the packages that its program needs on that image."""
    program = replace(job.program, requirements=equipment.requirements, required=equipment.required)
    return replace(job, program=program)
