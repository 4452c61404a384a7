"""What a job brings into the choice of its image, whatever the cloud."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.backends.job import Job, named
from distrain_nb.cluster.image_devices import devices_of
from distrain_nb.cluster.packages import Uses
from distrain_nb.layout.hardware import hardware_of
from distrain_nb.program.frameworks import KERAS_BACKEND, frameworks_of

if TYPE_CHECKING:
    from distrain_nb.backends.remote.options import RemoteOptions
    from distrain_nb.cluster.equipment import Equipment, Stock

# What `machine` of a backend calls the date, in ISO form.
TODAY = "today"
# and the devices that the image is for which the user names, in JSON.
_IMAGE_DEVICES = "image_devices"

OptionsT = TypeVar("OptionsT", bound="RemoteOptions")


def uses_of(job: Job[RemoteOptions]) -> Uses:
    """Return the devices that the program uses, by its imports and the layout's framework."""
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


def registry_answer(job: Job[RemoteOptions], stock: Stock) -> Mapping[str, str]:
    """Return, for `machine` of a backend, what the image that the user names is for, as far as the
    place doesn't know it and its registry says it now."""
    if not stock.unidentified:
        return {}
    from distrain_nb.image.description import describe

    description = describe(stock.unidentified, hardware_of(job.layout).platform)
    if description is None:
        return {}
    environment = {**description.environment, **dict(named(job.options.env))}
    devices = devices_of(environment, description.labels, description.packages)
    return {_IMAGE_DEVICES: json.dumps(devices)} if devices else {}


def stock_with_answer(job: Job[RemoteOptions], stock: Stock) -> Stock:
    """Return what there is to choose from, with the registry's answer about the named image."""
    return replace(stock, devices=json.loads(job.machine.get(_IMAGE_DEVICES, "{}")))


def with_packages(job: Job[OptionsT], equipment: Equipment) -> Job[OptionsT]:
    """Return the job with the packages that its program needs on that image."""
    program = replace(job.program, requirements=equipment.requirements, required=equipment.required)
    return replace(job, program=program)
