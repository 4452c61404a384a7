"""Vertex AI's SDK in Python, read and written: jobs of worker pools, training jobs and their `run`,
bare pools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.letter_case import snake
from distrain_nb.layout.formats.mappings import MappingReader, present
from distrain_nb.layout.formats.placeholders import unchosen
from distrain_nb.layout.formats.python_names import Call, Unread
from distrain_nb.layout.formats.python_source import PythonSource
from distrain_nb.layout.formats.python_values import known_values
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.reduction_server import reduction_image
from distrain_nb.places.vertex.forms.rest import near_image
from distrain_nb.places.vertex.forms.specs import from_specs, worker_pool_specs

if TYPE_CHECKING:
    from distrain_nb.types import Json, Unknown

_JOB, _COMPONENT = "CustomJob", "CustomTrainingJobOp"
# The components of pipelines that take machines as arguments are training jobs that run at once.
_TRAINING = (
    *("CustomTrainingJob", "CustomContainerTrainingJob", "CustomPythonPackageTrainingJob"),
    *("CustomContainerTrainingJobRunOp", "CustomPythonPackageTrainingJobRunOp"),
    *("create_custom_training_job_from_component", "create_custom_training_job_op_from_component"),
)
_LOCAL = "from_local_script"
_STARTS = ("run", "submit", "run_async")
# In the order of the SDK, whose notebooks give some of them without names.
POSITIONS: dict[str, tuple[str, ...]] = {
    _JOB: ("display_name", "worker_pool_specs", "base_output_dir"),
    "CustomTrainingJob": ("display_name", "script_path", "container_uri"),
    "CustomContainerTrainingJob": ("display_name", "container_uri", "command"),
}
_MACHINES = ("machine_type", "accelerator_type", "accelerator_count")
_DISKS = ("boot_disk_type", "boot_disk_size_gb")
_OF_RUNS = (*_MACHINES, *_DISKS, "replica_count")
_UNSAID = "ACCELERATOR_TYPE_UNSPECIFIED"
_POOL = frozenset(
    {
        *("machine_spec", "container_spec", "python_package_spec"),
        *("machineSpec", "containerSpec", "pythonPackageSpec"),
    }
)
_MACHINE_SPEC = frozenset({*_MACHINES, "tpu_topology", "reservation_affinity", "**"})
_SPECS = ("worker_pool_specs", "workerPoolSpecs")
_BUCKET = "gs://BUCKET"
_STRATEGIES = "from google.cloud.aiplatform.compat.types import custom_job\n"
PASTE = (
    "the cell with worker_pool_specs = […], CustomJob(…), or "
    "CustomTrainingJob(…).run(machine_type=…)"
)


def is_for_vertex(call: Call) -> bool:
    """Return whether a call has what a layout is read from."""
    if call.name in (*_TRAINING, _LOCAL):
        return True
    if call.name in (_JOB, _COMPONENT):  # without arguments a job says nothing
        return bool(call.values)
    return call.name in _STARTS and not call.values.keys().isdisjoint(_OF_RUNS)


def from_vertex(source: PythonSource) -> Imported | None:
    """Read the first job of a text; None if there is none. Raises OptionError for a study."""
    calls = [call for call in source.calls if is_for_vertex(call)]
    jobs = [call for call in calls if call.name not in _STARTS or call.owner not in calls]
    if not jobs:
        return _from_names(source)
    first, *rest = jobs
    has_pools = first.name in (_JOB, _COMPONENT)
    read = _from_job(first) if has_pools else _from_run(first)
    region, dropped = _region(source)
    layout = read.layout
    if layout.region is None and region:
        layout = layout.edited({"region": region})
    named = [*read.left_out, *dropped, *first.late, *first.unnamed]
    named += map(str, rest)
    named += [str(call) for call in source.calls if call.name == "HyperparameterTuningJob"]
    layout = near_image(layout)
    return replace(read, layout=layout, left_out=tuple(dict.fromkeys(named)))


def _region(source: PythonSource) -> tuple[str | None, list[str]]:
    """Return the location that the SDK is initialized with."""
    places = [call.values["location"] for call in source.calls
              if call.name == "init" and "location" in call.values]  # fmt: skip
    if not places:
        return None, []
    values, dropped = known_values({"location": places[-1]})
    return MappingReader(values).text("location"), dropped


def _from_job(job: Call) -> Imported:
    values, dropped = _with_steps(job)
    reader = MappingReader(values)
    job_spec = reader.values.pop("job_spec", None)
    if isinstance(job_spec, dict):  # as the API's own class has it
        read = from_specs({"job_spec": job_spec})
    else:
        specs = reader.values.pop("worker_pool_specs", None) or []
        read = from_specs({"worker_pool_specs": specs, "scheduling": _scheduling(reader)})
    region = reader.text("location")
    return replace(
        read,
        layout=read.layout.edited({"region": region}) if region else read.layout,
        left_out=(*read.left_out, *reader.rest(), *dropped),
        values={**read.values, **reader.values},
    )


def _with_steps(job: Call) -> tuple[dict[str, Unknown], list[str]]:
    """Return the arguments of a job and of what starts it, without those that can't be read."""
    values = job.settled()
    starts = [step for step in job.steps if step.name in _STARTS and not step.assigns]
    for step in starts[:1]:
        values |= step.values
    clean, dropped = known_values(values)
    return clean, [*dropped, *map(str, starts[1:])]


def _scheduling(reader: MappingReader) -> dict[str, object]:
    """Take the arguments that are the API's `Scheduling`: the SDK has seconds, a component of a
    pipeline has a text with their unit."""
    scheduling: dict[str, object] = {}
    for argument in ("scheduling_strategy", "strategy"):
        if strategy := reader.text(argument):
            scheduling["strategy"] = strategy
    for argument in ("timeout", "max_wait_duration"):
        if duration := reader.text(argument):
            scheduling[argument] = f"{duration.removesuffix('s')}s"
    return scheduling


def _from_run(job: Call) -> Imported:
    """Read what starts a training job: the machines are its arguments, one of them the primary."""
    values, dropped = _with_steps(job)
    reader = MappingReader(values)
    region = reader.text("location")
    replicas = reader.number("replica_count")
    pool: dict[str, object] = {
        "machine_spec": {
            name: reader.values.pop(name)
            for name in _MACHINES
            if reader.values.get(name) not in (None, _UNSAID)
        },
        "disk_spec": {n: reader.values.pop(n) for n in _DISKS if reader.values.get(n) is not None},
        "container_spec": {"image_uri": reader.text("container_uri")},
        "replica_count": 1,
    }
    if reader.values.get("accelerator_type") == _UNSAID:
        del reader.values["accelerator_type"]
    specs = [pool]
    if replicas and replicas > 1:
        specs.append({**pool, "replica_count": replicas - 1})
    if reducers := _reducers(reader):
        specs += [{} for _ in range(2 - len(specs))]
        specs.append(reducers)
    read = from_specs({"worker_pool_specs": specs, "scheduling": _scheduling(reader)})
    script = tuple(_script(reader))
    layout = read.layout.edited({"region": region}) if region else read.layout
    named = (*read.left_out, *reader.rest(), *dropped)
    values = {**read.values, **reader.values}
    return Imported("Vertex AI training job", layout, named, script, values)


def _reducers(reader: MappingReader) -> dict[str, object]:
    count = reader.number("reduction_server_replica_count")
    if not count:
        return {}
    image = reader.text("reduction_server_container_uri")
    return {
        "machine_spec": {"machine_type": reader.values.pop("reduction_server_machine_type", None)},
        "replica_count": count,
        "container_spec": {"image_uri": image or reduction_image(current(), None)},
    }


def _script(reader: MappingReader) -> Iterator[str]:
    """Yield the script with its arguments, if it is a file beside the notebook."""
    script = reader.values.get("script_path")
    if not isinstance(script, str) or "://" in script or unchosen(script):
        return
    yield str(reader.values.pop("script_path"))
    arguments = reader.values.get("args")
    if isinstance(arguments, (list, tuple)):
        del reader.values["args"]
        yield from map(str, arguments)


def _from_names(source: PythonSource) -> Imported | None:
    """Read pools that a text assigns, or is, and gives to no job."""
    for name, value in _values(source):
        specs = _pools(value)
        if specs is not None:
            clean, dropped = known_values({str(name): specs})
            if clean:
                read = from_specs(_filled(clean[str(name)]))
                return replace(read, left_out=(*read.left_out, *dropped))
    if any(call.name.endswith(("ParameterSpec", "TuningJob")) for call in source.calls):
        raise OptionError(
            "this Python for Vertex AI is a study, not a layout: for machines paste "
            f"{PASTE}; the form reads the study, and so does --study from a file"
        )
    return None


def _values(source: PythonSource) -> Iterator[tuple[object, object]]:
    """Yield the values that have a name, stand alone, or are given to a call, with their names."""
    yield from reversed(source.names.items())
    yield from source.shown
    for call in source.calls:
        yield from call.values.items()
        yield from ((call.name, value) for value in call.args)


def _filled(specs: Unknown) -> Unknown:
    """Replace pools that can't be read by empty ones."""
    return [spec or {} for spec in specs] if isinstance(specs, list) else specs


def _pools(value: object) -> object:
    """Return a value as `from_specs` takes it; None if it has no pools."""
    if isinstance(value, (list, tuple)):
        return list(value) if any(map(_is_pool, value)) else None
    if not isinstance(value, dict):
        return None
    if _is_pool(value):
        return [value]
    if "machine_type" in value and value.keys() <= _MACHINE_SPEC:
        return [{"machine_spec": value}]
    if any(name in value for name in (*_SPECS, "job_spec", "jobSpec")):
        return value
    inner = value.get("trial_job_spec")
    return None if isinstance(inner, Unread) else _pools(inner)


def _is_pool(value: object) -> bool:
    return isinstance(value, dict) and not _POOL.isdisjoint(value)


def custom_job_text(layout: Layout) -> str:
    """Return the layout as a job of the SDK that can be pasted into a notebook, with its
    imports."""
    pools = json.dumps(_snake_keys(worker_pool_specs(layout)), indent=4, ensure_ascii=False)
    start = present(timeout=layout.timeout, max_wait_duration=layout.max_wait)
    lines = [f"    {name}={value!r},\n" for name, value in start.items()]
    if strategy := layout.scheduling:
        name = f".{strategy}" if strategy.isidentifier() else f"[{strategy!r}]"
        lines.append(f"    scheduling_strategy=custom_job.Scheduling.Strategy{name},\n")
    body = "\n" + "".join(lines) if lines else ""
    return (
        f"from google.cloud import aiplatform\n{_STRATEGIES if layout.scheduling else ''}\n"
        f"aiplatform.init(\n    project={placeholders.PROJECT!r},\n"
        f"    location={layout.region or placeholders.LOCATION!r},\n"
        f"    staging_bucket={_BUCKET!r},\n)\n"
        f"job = aiplatform.CustomJob(\n    display_name={placeholders.JOB_NAME!r},\n"
        f"    worker_pool_specs={pools.replace(chr(10), chr(10) + '    ')},\n)\n"
        f"job.submit({body})\n"
    )


def _snake_keys(value: Json) -> Json:
    """Return a value with keys as Python has them."""
    if isinstance(value, dict):
        return {snake(name): _snake_keys(member) for name, member in value.items()}
    return [_snake_keys(member) for member in value] if isinstance(value, list) else value
