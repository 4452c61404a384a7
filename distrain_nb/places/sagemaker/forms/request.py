"""SageMaker: the estimator's arguments in Python, and the request in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import MappingReader, present, values_at, whole_number
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Alternative, Pool
from distrain_nb.places.sagemaker.rules.distributions import distribution_of

if TYPE_CHECKING:
    from distrain_nb.types import Json

_DATA_PARALLEL = "sagemaker_distributed_dataparallel"
_ENABLED = {
    "parameter_server": {"sagemaker_parameter_server_enabled": True},
    "mpi": {"sagemaker_mpi_enabled": True},
    "multi_worker_mirrored_strategy": {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    "torch_distributed": {"sagemaker_torch_distributed_enabled": True},
    "smdistributed.dataparallel": {f"{_DATA_PARALLEL}_enabled": True},
    "pytorchddp": {f"{_DATA_PARALLEL}_enabled": True},
    "pytorchxla": {"sagemaker_pytorch_xla_multi_worker_enabled": True},
    "smdistributed.modelparallel": {f"{_DATA_PARALLEL}_enabled": False},
}
_MPI_OPTIONS = {
    "mpi": "sagemaker_mpi_custom_mpi_options",
    "pytorchddp": f"{_DATA_PARALLEL}_custom_mpi_options",
    "smdistributed.dataparallel": f"{_DATA_PARALLEL}_custom_mpi_options",
}
_MPI_RANKS = "sagemaker_mpi_num_of_processes_per_host"
_INSTANCE_TYPE = "sagemaker_instance_type"
_WITHOUT_INSTANCE_TYPE = {"parameter_server", "multi_worker_mirrored_strategy", "mpi"}


def hyperparameters(
    distributions: Mapping[str, Mapping[str, Json]], machine: str | None, *, others: bool = False
) -> dict[str, Json]:
    """Return the hyperparameters of distributions, by full name with their options, on an instance
    type; yet to be encoded. Where it may also be one of `others`, a host knows its own."""
    encoded: dict[str, Json] = {}
    for name, options in distributions.items():
        encoded |= _ENABLED.get(name, {})
        if "processes_per_host" in options:
            encoded[_MPI_RANKS] = options["processes_per_host"]
        if name in _MPI_OPTIONS:
            encoded[_MPI_OPTIONS[name]] = options.get("custom_mpi_options", "")
    if distributions.keys() - _WITHOUT_INSTANCE_TYPE and not others:
        encoded[_INSTANCE_TYPE] = machine or placeholders.INSTANCE_TYPE
    return encoded


def read(layout: Layout, reader: MappingReader) -> Layout:
    """Return the layout with what hyperparameters say of its distribution; takes these out of
    `reader`.

    Raises OptionError, naming its path, for a value that can't be read.
    """
    for name, enabled in _ENABLED.items():
        ((key, value),) = enabled.items()
        if key not in reader.values or _decoded(reader, key) is not value:
            continue
        del reader.values[key]
        row = current().distributions.get(name)
        if row and row.launcher:
            layout = replace(layout, launcher=row.launcher)
        else:
            layout = replace(layout, distribution=name)
        if _MPI_OPTIONS.get(name) in reader.values:
            options = str(_decoded(reader, _MPI_OPTIONS[name]))
            del reader.values[_MPI_OPTIONS[name]]
            layout = replace(layout, mpi_options=options or None)
        if name == "mpi" and _MPI_RANKS in reader.values:
            ranks = whole_number(_decoded(reader, _MPI_RANKS), reader.at(_MPI_RANKS))
            del reader.values[_MPI_RANKS]
            layout = replace(layout, ranks_per_replica=ranks)
    if layout.launcher != "auto" or layout.distribution:
        reader.values.pop(_INSTANCE_TYPE, None)  # which the request has as well
    return layout


def _decoded(reader: MappingReader, key: str) -> Json:
    try:
        value: Json = json.loads(str(reader.values[key]))
    except (ValueError, RecursionError):
        raise OptionError(f"{reader.at(key)} is not JSON, as AWS's containers read it") from None
    return value


CLASSES = {
    "tensorflow": "TensorFlow",
    "pytorch": "PyTorch",
    "mxnet": "MXNet",
    "huggingface": "HuggingFace",
}
_INPUT_MODE = "File"
_SMP = "smdistributed.modelparallel"


class InstanceGroup(NamedTuple):
    """Prints as the SDK's class of that name is called."""

    instance_group_name: str
    instance_type: str | None
    instance_count: int


def hosts(layout: Layout) -> Pool:
    """Return all hosts as one pool: the workers, with the primary among them if there is one."""
    primary, workers = layout.primary, layout.workers
    if primary and workers:
        alike = primary.machines == workers.machines
        return replace(
            workers,
            replicas=workers.replicas + primary.replicas,
            alternatives=tuple(_together(primary, workers)) if alike else (),
        )
    return workers or primary or Pool(0)


def _together(primary: Pool, workers: Pool) -> Iterator[Alternative]:
    """Yield the workers' alternatives, with as many more of each as the primary has of its own."""
    for number, alternative in enumerate(workers.alternatives, 1):
        replicas = (primary.alternatives[number - 1].replicas, alternative.replicas)
        both = primary.taking(number).replicas + workers.taking(number).replicas
        yield replace(alternative, replicas=None if replicas == (None, None) else both)


def groups(layout: Layout) -> tuple[tuple[str, Pool], ...]:
    """Return the instance groups by name, where the primary's instance is of another type than the
    workers'; else none. Groups have no alternatives."""
    primary, workers = layout.primary, layout.workers
    if primary is None or workers is None or primary.machines == workers.machines:
        return ()
    if primary.replicas != 1:  # a fault that has its own rule
        return ()
    return (("primary", primary), ("workers", workers))


def estimator_arguments(layout: Layout) -> dict[str, Json]:
    """Return the layout as arguments of an estimator of the SageMaker Python SDK, version 2.

    AWS's containers launch ranks in one instance group only, so there is no `distribution` where
    there are two.
    """
    pool, apart = hosts(layout), groups(layout)
    image, has_class = pool.image or layout.image, layout.framework_name in CLASSES
    return present(
        entry_point=placeholders.ENTRY_POINT if has_class else None,
        role=placeholders.ROLE,
        image_uri=image or (None if has_class else placeholders.TRAINING_IMAGE),
        py_version=placeholders.PY_VERSION if has_class and not image else None,
        framework_version=layout.framework_version if _versioned(layout) else None,
        instance_count=None if apart else pool.replicas,
        instance_type=None if apart else pool.machine,
        instance_groups=[InstanceGroup(name, p.machine, p.replicas) for name, p in apart],
        volume_size=pool.disk_gb,
        max_run=layout.timeout,
        use_spot_instances=layout.spot or None,
        max_wait=layout.max_wait if layout.spot else None,
        checkpoint_s3_uri=layout.checkpoint,
        distribution={} if apart else distribution_argument(layout),
    )


def _versioned(layout: Layout) -> bool:
    """Return whether the framework's estimator takes its version: HuggingFace's takes three
    others."""
    return layout.framework_name in CLASSES and layout.framework_name != "huggingface"


def distributions(layout: Layout) -> dict[str, dict[str, Json]]:
    """Return the layout's distributions by full name, such as `smdistributed.dataparallel`, each
    with its options; none if the launcher is auto or python."""
    row = distribution_of(layout, current())
    if row is None:
        return {}
    options: dict[str, Json] = {"enabled": True}
    if "processes_per_host" in row.options and layout.ranks_per_replica:
        options["processes_per_host"] = layout.ranks_per_replica
    if "custom_mpi_options" in row.options and layout.mpi_options:
        options["custom_mpi_options"] = layout.mpi_options
    more = distributions(replace(layout, distribution=None)) if row.distribution == _SMP else {}
    return {row.distribution: options, **more}


def distribution_argument(layout: Layout) -> dict[str, Json]:
    """Return the `distribution` argument; empty if the launcher is auto or python."""
    argument: dict[str, Json] = {}
    for name, options in distributions(layout).items():
        outer, _, inner = name.partition(".")
        argument[outer] = {inner: options} if inner else options
    return argument


def estimator_text(layout: Layout) -> str:
    """Return the arguments as a call that can be pasted into a notebook."""
    name = CLASSES.get(layout.framework_name or "", "Estimator")
    lines = (f"    {key}={value!r},\n" for key, value in estimator_arguments(layout).items())
    return f"{name}(\n{''.join(lines)})\n"


def training_job(layout: Layout) -> dict[str, Json]:
    """Write the layout's part of a `CreateTrainingJob` request."""
    pool, apart = hosts(layout), groups(layout)
    encoded = hyperparameters(
        {} if apart else distributions(layout), pool.machine, others=bool(pool.alternatives)
    )
    return present(
        TrainingJobName=placeholders.TRAINING_JOB_NAME,
        HyperParameters={name: json.dumps(value) for name, value in encoded.items()},
        AlgorithmSpecification={
            "TrainingImage": pool.image or layout.image or placeholders.TRAINING_IMAGE,
            "TrainingInputMode": _INPUT_MODE,
        },
        RoleArn=placeholders.ROLE,
        OutputDataConfig={"S3OutputPath": placeholders.OUTPUT_PATH},
        ResourceConfig=resources(layout),
        StoppingCondition=times(layout),
        EnableManagedSpotTraining=layout.spot or None,
        CheckpointConfig=present(S3Uri=layout.checkpoint or None),
    )


def resources(layout: Layout) -> dict[str, Json]:
    """Return the instances and their volumes, as a `ResourceConfig`."""
    pool, apart = hosts(layout), groups(layout)
    machines = present(InstanceType=pool.machine, InstanceCount=pool.replicas)
    if pool.alternatives and not apart:
        machines = _preferences(pool)
    if apart:
        machines = {
            "InstanceGroups": [_group(name, pool_of_group) for name, pool_of_group in apart]
        }
    return {**machines, **present(VolumeSizeInGB=pool.disk_gb)}


def _preferences(pool: Pool) -> dict[str, Json]:
    """Return the machine types to choose from: one count for all of them, or one for each."""
    choices = [pool.taking(number) for number in range(len(pool.machines))]
    if all(alternative.replicas is None for alternative in pool.alternatives):
        types: list[Json] = [present(InstanceType=choice.machine) for choice in choices]
        return {"InstancePreferences": types, "InstanceCount": pool.replicas}
    return {
        "InstancePreferences": [
            present(InstanceType=choice.machine, InstanceCount=choice.replicas)
            for choice in choices
        ]
    }


def times(layout: Layout) -> dict[str, Json]:
    """Write the time limits that the layout sets, as a `StoppingCondition`. On spot machines the
    time to wait includes the run; otherwise it limits how long the job may be pending."""
    waits = "MaxWaitTimeInSeconds" if layout.spot else "MaxPendingTimeInSeconds"
    return present(**{"MaxRuntimeInSeconds": layout.timeout, waits: layout.max_wait})


def _group(name: str, pool: Pool) -> dict[str, Json]:
    return present(InstanceGroupName=name, InstanceType=pool.machine, InstanceCount=pool.replicas)


def from_training_job(value: object) -> Imported:
    """Read what `training_job` gives. Raises OptionError, naming the path, for anything else."""
    reader = MappingReader.of(value, "")
    machines, stop = reader.below("ResourceConfig"), reader.below("StoppingCondition")
    checkpoint, more = reader.below("CheckpointConfig"), reader.below("HyperParameters")
    algorithm, output = reader.below("AlgorithmSpecification"), reader.below("OutputDataConfig")
    if algorithm.values.get("TrainingInputMode") == _INPUT_MODE:
        del algorithm.values["TrainingInputMode"]
    disk, spot = machines.number("VolumeSizeInGB"), reader.flag("EnableManagedSpotTraining")
    waits = "MaxWaitTimeInSeconds" if spot else "MaxPendingTimeInSeconds"
    primary, workers = pools_of(machines)
    layout = Layout(
        "sagemaker",
        primary=replace(primary, disk_gb=disk) if primary else None,
        workers=replace(workers, disk_gb=disk),
        image=algorithm.text("TrainingImage"),
        scheduling="SPOT" if spot else None,
        timeout=stop.number("MaxRuntimeInSeconds"),
        max_wait=stop.number(waits),
        checkpoint=checkpoint.text("S3Uri"),
    )
    layout = read(layout, more)
    dropped = reader.rest(machines, stop, checkpoint, algorithm, output)
    # The program's own are no placeholders, whatever they look like.
    values = values_at(value, dropped)
    return Imported("SageMaker training job", layout, (*dropped, *more.done()), values=values)


def pools_of(machines: MappingReader) -> tuple[Pool | None, Pool]:
    """Return the primary, where it is an instance group of its own, and the workers."""
    listed = machines.values.pop("InstanceGroups", None) or []
    path = machines.at("InstanceGroups")
    if not isinstance(listed, list):
        raise OptionError(f"invalid {path} {shown(listed)}: expected a list")
    apart = [_pool(MappingReader.of(group, path)) for group in listed]
    if not apart:
        return None, _of_preferences(machines)
    if len(apart) == 1:
        return None, apart[0]
    if len(apart) > 2 or apart[0].replicas != 1:
        raise OptionError(
            f"{path} has {len(apart)} groups, the first with {apart[0].replicas} instances; a "
            "layout has the primary, which is one instance, and the workers"
        )
    return apart[0], apart[1]


def _of_preferences(machines: MappingReader) -> Pool:
    """Return the pool of an `InstanceType`, or of those to choose from, of which all else is left
    to be named. Raises OptionError for what the service refuses."""
    key = "InstancePreferences"
    path, listed = machines.at(key), machines.values.get(key)
    if not isinstance(listed, list) or not listed:
        return _pool(machines)
    if machines.values.get("InstanceType") is not None:
        raise OptionError(f"{path} and {machines.at('InstanceType')} can't be given together")
    readers = [MappingReader.of(entry, f"{path}[{place}]") for place, entry in enumerate(listed)]
    has_count = ["InstanceCount" in part.values for part in (*readers, machines)]
    if len(set(has_count[:-1])) > 1 or has_count[0] == has_count[-1]:
        raise OptionError(
            f"{path} needs an InstanceCount in each entry, or one for all of them beside it"
        )
    common = machines.number("InstanceCount")
    choices = [(reader.text("InstanceType"), reader.number("InstanceCount")) for reader in readers]
    del machines.values[key]
    for place, reader in enumerate(readers):
        machines.values |= {f"{key}[{place}].{name}": it for name, it in reader.values.items()}
    (first, count), *others = choices
    count = common if count is None else count
    alternatives = tuple(Alternative(name, number) for name, number in others if name)
    return Pool(1 if count is None else count, first, alternatives=alternatives)


def _pool(reader: MappingReader) -> Pool:
    count = reader.number("InstanceCount")
    return Pool(1 if count is None else count, reader.text("InstanceType"))
