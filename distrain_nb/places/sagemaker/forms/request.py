"""SageMaker: the request `CreateTrainingJob` in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.mappings import MappingReader, present, values_at
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Alternative, Pool
from distrain_nb.places.sagemaker.forms.hyperparameters import hyperparameters, read
from distrain_nb.places.sagemaker.rules.distributions import distribution_of

if TYPE_CHECKING:
    from distrain_nb.types import Json

_INPUT_MODE = "File"
_SMP = "smdistributed.modelparallel"


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
