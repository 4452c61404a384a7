"""SageMaker: the estimator's arguments in Python, and the request in JSON."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.exchange.pieces import Given, Imported, chosen, present, whole
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.rules.sagemaker import distribution_of

_CLASSES = {
    "tensorflow": "TensorFlow",
    "pytorch": "PyTorch",
    "mxnet": "MXNet",
    "huggingface": "HuggingFace",
}
_FRAMEWORKS = {name: framework for framework, name in _CLASSES.items()}
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
_NOT_OURS = ("entry_point", "source_dir", "role", "hyperparameters", "base_job_name", "model_dir")
_SMP = "smdistributed.modelparallel"


def hosts(layout: Layout) -> Pool:
    """All hosts as one pool: the workers, with the primary among them if there is one."""
    primary, workers = layout.primary, layout.workers
    if primary and workers:
        return replace(workers, replicas=workers.replicas + primary.replicas)
    return workers or primary or Pool(0)


def estimator_arguments(layout: Layout) -> dict[str, Any]:
    """The layout as arguments of an estimator of the SageMaker Python SDK, version 2."""
    pool = hosts(layout)
    return present(
        image_uri=pool.image or layout.image,
        framework_version=layout.framework_version if _versioned(layout) else None,
        instance_count=pool.replicas,
        instance_type=pool.machine,
        volume_size=pool.disk_gb,
        max_run=layout.timeout,
        use_spot_instances=layout.spot or None,
        max_wait=layout.max_wait,
        checkpoint_s3_uri=layout.checkpoint,
        distribution=distribution_argument(layout),
    )


def _versioned(layout: Layout) -> bool:
    """Whether the framework's estimator takes its version: HuggingFace's takes three others."""
    return layout.framework_name in _CLASSES and layout.framework_name != "huggingface"


def distribution_argument(layout: Layout) -> dict[str, Any]:
    """The `distribution` argument; empty if the launcher is auto or python."""
    row = distribution_of(layout, current())
    if row is None:
        return {}
    options: dict[str, Any] = {"enabled": True}
    if "processes_per_host" in row.options and layout.ranks_per_replica:
        options["processes_per_host"] = layout.ranks_per_replica
    if "custom_mpi_options" in row.options and layout.mpi_options:
        options["custom_mpi_options"] = layout.mpi_options
    outer, _, inner = row.distribution.partition(".")
    named = {outer: {inner: options}} if inner else {outer: options}
    if row.distribution == _SMP:
        return {**named, **distribution_argument(replace(layout, distribution=None))}
    return named


def estimator_text(layout: Layout) -> str:
    """The arguments as a call that can be pasted into a notebook."""
    name = _CLASSES.get(layout.framework_name or "", "Estimator")
    lines = (f"    {key}={value!r},\n" for key, value in estimator_arguments(layout).items())
    return f"{name}(\n{''.join(lines)})\n"


def training_job(layout: Layout) -> dict[str, Any]:
    """What the layout says of a `CreateTrainingJob` request."""
    pool = hosts(layout)
    checkpoint = {"S3Uri": layout.checkpoint} if layout.checkpoint else {}
    return present(
        ResourceConfig=present(
            InstanceType=pool.machine, InstanceCount=pool.replicas, VolumeSizeInGB=pool.disk_gb
        ),
        StoppingCondition=present(
            MaxRuntimeInSeconds=layout.timeout, MaxWaitTimeInSeconds=layout.max_wait
        ),
        EnableManagedSpotTraining=layout.spot or None,
        CheckpointConfig=checkpoint,
    )


def from_training_job(value: object) -> Imported:
    """Reads what `training_job` gives. Raises OptionError, naming the path, for anything else."""
    given = Given.of(value, "")
    machines, stop = given.below("ResourceConfig"), given.below("StoppingCondition")
    checkpoint = given.below("CheckpointConfig")
    count = machines.number("InstanceCount")
    workers = Pool(
        1 if count is None else count,
        machines.text("InstanceType"),
        disk_gb=machines.number("VolumeSizeInGB"),
    )
    layout = Layout(
        "sagemaker",
        workers=workers,
        scheduling="SPOT" if given.values.pop("EnableManagedSpotTraining", False) else None,
        timeout=stop.number("MaxRuntimeInSeconds"),
        max_wait=stop.number("MaxWaitTimeInSeconds"),
        checkpoint=checkpoint.text("S3Uri"),
    )
    return Imported("SageMaker training job", layout, given.done(machines, stop, checkpoint))


def from_python(text: str) -> Imported:
    """Reads the estimator in a piece of Python, of version 1 or 2 of the SDK, without running it.

    Names stand for the literals that they were assigned. Raises OptionError if there is no
    estimator.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as wrong:
        raise OptionError(f"not Python: {wrong.msg} in line {wrong.lineno}") from None
    names: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            names[statement.targets[0].id] = _value(statement.value, names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_estimator(node):
            given = {_OLD_NAMES.get(k.arg, k.arg): _value(k.value, names)
                     for k in node.keywords if k.arg}  # fmt: skip
            return _from_arguments(_called(node), given)
    raise OptionError("there is no call with the arguments instance_type and instance_count")


def _is_estimator(node: ast.Call) -> bool:
    arguments = {_OLD_NAMES.get(keyword.arg or "", keyword.arg) for keyword in node.keywords}
    return not arguments.isdisjoint(("instance_type", "instance_count"))


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """A literal's value, with names looked up; None for what is neither."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Dict):
        return {
            _value(key, names): _value(value, names)
            for key, value in zip(node.keys, node.values, strict=True)
            if key
        }
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _from_arguments(name: str, given: dict[str, Any]) -> Imported:
    framework, number = _FRAMEWORKS.get(name), given.pop("framework_version", None)
    count, size = given.pop("instance_count", None), given.pop("volume_size", None)
    machine, image = given.pop("instance_type", None), given.pop("image_uri", None)
    workers = Pool(
        1 if count is None else whole(count, "instance_count"),
        chosen(str(machine)) if machine else None,
        disk_gb=None if size is None else whole(size, "volume_size"),
    )
    layout = Layout(
        "sagemaker",
        workers=workers,
        framework=f"{framework}-{number}" if framework and number else framework,
        image=str(image) if image else None,
        scheduling="SPOT" if given.pop("use_spot_instances", None) else None,
        timeout=_seconds(given, "max_run"),
        max_wait=_seconds(given, "max_wait"),
        checkpoint=given.pop("checkpoint_s3_uri", None),
    )
    layout, left = _distributed(layout, given.pop("distribution", None) or {})
    rest = [key for key in given if key not in _NOT_OURS]
    return Imported("SageMaker estimator", layout, (*rest, *left))


def _seconds(given: dict[str, Any], key: str) -> int | None:
    value = given.pop(key, None)
    return None if value is None else whole(value, key)


def _distributed(layout: Layout, given: object) -> tuple[Layout, tuple[str, ...]]:
    """The layout with the launcher, distribution and MPI options of a `distribution` argument."""
    outer = Given.of(given, "distribution")
    left: list[str] = []
    for name, options in _flat(outer):
        if not options.values.pop("enabled", False):
            continue
        row = current().distributions.get(name)
        if row and row.launcher:
            layout = replace(layout, launcher=row.launcher)
        else:
            layout = replace(layout, distribution=name)
        if "processes_per_host" in options.values:
            ranks = options.number("processes_per_host")
            layout = replace(layout, ranks_per_replica=ranks)
        if "custom_mpi_options" in options.values:
            layout = replace(layout, mpi_options=options.word("custom_mpi_options"))
        left += options.done()
    return layout, tuple(left)


def _flat(outer: Given) -> list[tuple[str, Given]]:
    found = []
    for name in list(outer.values):
        options = outer.below(name)
        if name == "smdistributed":
            found += [(f"{name}.{inner}", options.below(inner)) for inner in list(options.values)]
        else:
            found.append((name, options))
    return found
