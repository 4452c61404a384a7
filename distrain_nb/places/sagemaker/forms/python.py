"""SageMaker's SDK in Python, read without running it: estimators of versions 1 and 2, and the
`ModelTrainer` of version 3 (facts: SM-SDK)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import MappingReader, present
from distrain_nb.layout.formats.placeholders import unchosen
from distrain_nb.layout.formats.python_names import Call, Unread
from distrain_nb.layout.formats.python_source import PythonSource
from distrain_nb.layout.formats.python_values import known_values
from distrain_nb.layout.layout import Layout
from distrain_nb.places.sagemaker.forms.estimator import CLASSES, InstanceGroup
from distrain_nb.places.sagemaker.forms.request import pools_of

if TYPE_CHECKING:
    from distrain_nb.types import Json, Unknown

_FRAMEWORKS = {name: framework for framework, name in CLASSES.items()}
_OLD_NAMES = {
    "distributions": "distribution",
    "train_instance_count": "instance_count",
    "train_instance_type": "instance_type",
    "train_volume_size": "volume_size",
    "train_max_run": "max_run",
    "train_max_wait": "max_wait",
    "train_use_spot_instances": "use_spot_instances",
    "image_name": "image_uri",
}
_TRAINER = "ModelTrainer"
_LAUNCHERS = {
    "Torchrun": "torchrun",
    "MPI": "mpi",
    "Horovod": "mpi",
    "ParameterServers": "parameter-server",
}
_NO_TRAINING = (
    "InstanceGroup",
    "InstancePreference",
    "Processor",
    "Transformer",
    "Model",
    "Monitor",
    "Tuner",
    "Config",
)
_TUNERS = ("HyperparameterTuner", "HyperparameterTuningJob")
# In the order of the SDK, whose notebooks give some of them without names.
POSITIONS: dict[str, tuple[str, ...]] = {
    "Estimator": ("image_uri", "role", "instance_count", "instance_type"),
    "PyTorch": ("entry_point", "framework_version", "py_version", "source_dir"),
    "InstanceGroup": InstanceGroup._fields,
    "fit": ("inputs", "wait", "logs", "job_name", "experiment_config"),
    "train": ("input_data_config", "wait", "logs"),
}
_PREFERENCES, _INSTANCES = "instance_preferences", ("instance_type", "instance_count")
_STARTS = ("fit", "train")
_SETS = "set_hyperparameters"


def from_sagemaker(source: PythonSource) -> Imported | None:
    """Read the SDK's first call in a piece of Python; None if there is none."""
    trainers = [call for call in source.calls if call.name == _TRAINER]
    calls = trainers or [call for call in source.calls if _is_estimator(call)]
    if not calls:
        return None
    first, *rest = calls
    values, dropped = _arguments(first)
    arguments, unread = known_values(values)
    read = _from_trainer(arguments) if trainers else _from_estimator(first.name, arguments)
    tuners = [call for call in source.calls if call.name in _TUNERS]
    named = (*read.left_out, *dropped, *unread, *first.late, *map(str, [*rest, *tuners]))
    return replace(read, left_out=tuple(dict.fromkeys(named)))


def is_for_sagemaker(call: Call) -> bool:
    """Return whether a call has what a layout is read from."""
    return call.name == _TRAINER or _is_estimator(call)


def _is_estimator(call: Call) -> bool:
    """Return whether a call makes an object that trains on instances.

    Functions with an argument for an instance type, such as `image_uris.retrieve` and `deploy`,
    don't.
    """
    if not call.name[:1].isupper() or call.name.endswith(_NO_TRAINING):
        return False
    arguments = {_OLD_NAMES.get(name, name) for name in call.values}
    return not arguments.isdisjoint(("instance_type", "instance_count", "instance_groups"))


def _arguments(call: Call) -> tuple[dict[str, object], list[str]]:
    """Return the arguments as they are when the job starts, and what can't be read of them."""
    values = {_OLD_NAMES.get(name, name): value for name, value in call.values.items()}
    dropped = list(call.unnamed)
    has_started = False
    for step in call.steps:
        if step.name in _STARTS:
            if has_started:
                dropped.append(str(step))
                continue
            has_started = True
            names = [name for name, value in step.values.items() if value is not None]
            dropped += [f"{step.name}({text})" for text in (*names, *step.unnamed)]
        elif step.assigns or step.name == _SETS:
            changes = step.values
            if step.assigns:
                changes = {_OLD_NAMES.get(step.name, step.name): step.args[0]}
            if has_started:
                dropped.append(f"{step.name} (line {step.line})")
                continue
            if not call.surely(step):
                changes = {name: Unread(step.line) for name in changes}
            if step.assigns:
                values |= changes
            else:
                values["hyperparameters"] = _with(values.get("hyperparameters"), changes)
                dropped += [f"{step.name}({text})" for text in step.unnamed]
    return values, dropped


def _with(value: object, changes: Mapping[str, object]) -> dict[str, object]:
    """Return hyperparameters with changes; what they were before may be unread."""
    if isinstance(value, dict):
        return {**value, **changes}
    before = {} if value is None else {"**": value if isinstance(value, Unread) else Unread()}
    return {**before, **changes}


def _from_estimator(name: str, values: dict[str, object]) -> Imported:
    reader = MappingReader(values)
    framework, number = _FRAMEWORKS.get(name), reader.text("framework_version")
    disk, spot = reader.number("volume_size"), reader.values.pop("use_spot_instances", None)
    primary, workers = pools_of(_machines(reader))
    layout = Layout(
        "sagemaker",
        primary=replace(primary, disk_gb=disk) if primary else None,
        workers=replace(workers, disk_gb=disk),
        framework=f"{framework}-{number}" if framework and number else framework,
        image=reader.text("image_uri"),
        scheduling="SPOT" if spot else None,
        timeout=reader.number("max_run"),
        max_wait=reader.number("max_wait"),
        checkpoint=reader.text("checkpoint_s3_uri"),
    )
    layout, dropped = _distributed(layout, reader)
    if number and not framework:
        dropped = (*dropped, "framework_version")
    script = _script(reader, "entry_point", reader)
    lost = (*reader.rest(), *dropped)
    return Imported("SageMaker estimator", layout, lost, script, reader.values)


def _script(reader: MappingReader, entry: str, hyper: MappingReader) -> tuple[str, ...]:
    """Return the script by its path from the notebook's folder, and hyperparameters as its
    arguments."""
    folder = str(reader.values.get("source_dir") or "")
    if "://" in folder or unchosen(folder) or (name := reader.text(entry)) is None:
        return ()
    reader.values.pop("source_dir", None)
    values = hyper.values.get("hyperparameters")
    if not isinstance(values, dict):
        return (PurePosixPath(folder, name).as_posix(),)
    del hyper.values["hyperparameters"]
    return PurePosixPath(folder, name).as_posix(), *_as_arguments(values)


def _machines(reader: MappingReader) -> MappingReader:
    """Return the instances of an estimator's arguments, in the request's words."""
    listed = reader.values.pop("instance_groups", None) or []
    if not isinstance(listed, list) or not all(map(_is_group, listed)):
        raise OptionError(
            f"invalid instance_groups {shown(listed)}: expected a list of InstanceGroup(…)"
        )
    machines: dict[str, object] = {
        "InstanceType": reader.values.pop("instance_type", None),
        "InstanceCount": reader.values.pop("instance_count", None),
        "InstanceGroups": [_as_request(group.values) for group in listed],
    }
    preferences = reader.values.get(_PREFERENCES)
    if isinstance(preferences, list) and all(map(_is_preference, preferences)):
        del reader.values[_PREFERENCES]
        machines["InstancePreferences"] = [_as_request(entry.values) for entry in preferences]
        for place, entry in enumerate(preferences):
            rest = {name: it for name, it in entry.values.items() if name not in _INSTANCES}
            reader.values |= {f"{_PREFERENCES}[{place}].{name}": it for name, it in rest.items()}
    return MappingReader({name: value for name, value in machines.items() if value is not None})


def _is_preference(value: object) -> bool:
    return isinstance(value, Call) and value.name == "InstancePreference"


def _is_group(value: object) -> bool:
    if not isinstance(value, Call) or value.name != InstanceGroup.__name__:
        return False
    if set(value.values) != set(InstanceGroup._fields):
        raise OptionError(f"an InstanceGroup has {', '.join(InstanceGroup._fields)}")
    return True


def _as_request(values: Mapping[str, Unknown]) -> dict[str, Json]:
    kind, count = (values.get(name) for name in _INSTANCES)
    return present(InstanceType=kind, InstanceCount=count)


def _distributed(layout: Layout, reader: MappingReader) -> tuple[Layout, tuple[str, ...]]:
    """Return the layout with the launcher, distribution and MPI options of a `distribution`
    argument."""
    argument = reader.below("distribution")
    dropped: list[str] = []
    for name, values in _flat(argument.values):
        options = MappingReader.of(values or {}, argument.at(name))
        row = current().distributions.get(name)
        launcher = row.launcher if row else ""
        taken = layout.launcher != "auto" if launcher else layout.distribution
        if not options.values.pop("enabled", False) or taken:
            dropped += [argument.at(name)] if taken else options.rest()
            continue
        if launcher:
            layout = replace(layout, launcher=launcher)
        else:
            layout = replace(layout, distribution=name)
        if "processes_per_host" in options.values:
            layout = replace(layout, ranks_per_replica=options.number("processes_per_host"))
        if "custom_mpi_options" in options.values:
            layout = replace(layout, mpi_options=options.word("custom_mpi_options"))
        dropped += options.rest()
    return layout, tuple(dropped)


def _flat(argument: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the distributions of an estimator's argument by full name,
    `smdistributed.dataparallel`."""
    for name, options in argument.items():
        if name == "smdistributed" and isinstance(options, dict):
            yield from ((f"{name}.{inner}", value) for inner, value in options.items())
        else:
            yield name, options


def _from_trainer(values: dict[str, object]) -> Imported:
    reader = MappingReader(values)
    compute, stop = _part(reader, "compute"), _part(reader, "stopping_condition")
    checkpoint = _part(reader, "checkpoint_config")
    disk, spot = compute.number("volume_size_in_gb"), "enable_managed_spot_training"
    is_spot = compute.values.pop(spot, None)
    primary, workers = pools_of(_machines(compute))
    layout = Layout(
        "sagemaker",
        primary=replace(primary, disk_gb=disk) if primary else None,
        workers=replace(workers, disk_gb=disk),
        image=reader.text("training_image"),
        scheduling="SPOT" if is_spot else None,
        timeout=stop.number("max_runtime_in_seconds"),
        max_wait=stop.number(
            "max_wait_time_in_seconds" if is_spot else "max_pending_time_in_seconds"
        ),
        checkpoint=checkpoint.text("s3_uri"),
    )
    layout, dropped = _launched(layout, reader)
    code = _part(reader, "source_code")
    script = _script(code, "entry_script", reader)
    parts = (reader, compute, stop, checkpoint, code)
    lost = (*(path for part in parts for path in part.rest()), *dropped)
    values = {part.at(name): value for part in parts for name, value in part.values.items()}
    return Imported("SageMaker ModelTrainer", layout, lost, script, values)


def _part(reader: MappingReader, key: str) -> MappingReader:
    """Take an argument: the values of its class, or of the mapping that it is."""
    value = reader.values.pop(key, None)
    return MappingReader.of(
        value.values if isinstance(value, Call) else value or {}, reader.at(key)
    )


def _launched(layout: Layout, reader: MappingReader) -> tuple[Layout, Iterator[str]]:
    """Return the layout with what a trainer's `distributed` says."""
    how = reader.values.get("distributed")
    if not isinstance(how, Call) or how.name not in _LAUNCHERS:
        return layout, iter(())
    options = _part(reader, "distributed")
    more = options.values.pop("mpi_additional_options", None) or []
    listed = more if isinstance(more, list | tuple) else [more]
    mpi_options = options.word("mpi_options") or " ".join(map(str, listed))
    layout = replace(
        layout,
        launcher=_LAUNCHERS[how.name],
        ranks_per_replica=options.number("process_count_per_node"),
        mpi_options=mpi_options or None,
    )
    return layout, iter(options.rest())


def _as_arguments(values: Mapping[str, object]) -> Iterator[str]:
    """Yield hyperparameters as the toolkit gives them to a script."""
    for name, value in values.items():
        yield f"--{name}"
        yield value if isinstance(value, str) else json.dumps(value)
