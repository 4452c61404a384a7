"""SageMaker: the estimator's arguments in Python, and the request in JSON."""

from __future__ import annotations

import ast
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.exchange.pieces import Given, Imported, present, whole
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
_MOST_PARTS = 10_000
_SMP = "smdistributed.modelparallel"


class InstanceGroup(NamedTuple):
    """Prints as the SDK's class of that name is called."""

    instance_group_name: str
    instance_type: str | None
    instance_count: int


def hosts(layout: Layout) -> Pool:
    """All hosts as one pool: the workers, with the primary among them if there is one."""
    primary, workers = layout.primary, layout.workers
    if primary and workers:
        return replace(workers, replicas=workers.replicas + primary.replicas)
    return workers or primary or Pool(0)


def groups(layout: Layout) -> tuple[tuple[str, Pool], ...]:
    """The instance groups by name, where the primary's instance is of another type than the
    workers'; else none."""
    primary, workers = layout.primary, layout.workers
    if primary is None or workers is None or primary.machine == workers.machine:
        return ()
    if primary.replicas != 1:  # a fault that has its own rule
        return ()
    return (("primary", primary), ("workers", workers))


def estimator_arguments(layout: Layout) -> dict[str, Any]:
    """The layout as arguments of an estimator of the SageMaker Python SDK, version 2.

    AWS's containers launch ranks in one instance group only, so there is no `distribution` where
    there are two.
    """
    pool, apart = hosts(layout), groups(layout)
    return present(
        image_uri=pool.image or layout.image,
        framework_version=layout.framework_version if _versioned(layout) else None,
        instance_count=None if apart else pool.replicas,
        instance_type=None if apart else pool.machine,
        instance_groups=[InstanceGroup(name, p.machine, p.replicas) for name, p in apart],
        volume_size=pool.disk_gb,
        max_run=layout.timeout,
        use_spot_instances=layout.spot or None,
        max_wait=layout.max_wait,
        checkpoint_s3_uri=layout.checkpoint,
        distribution={} if apart else distribution_argument(layout),
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
    pool, apart = hosts(layout), groups(layout)
    machines = present(InstanceType=pool.machine, InstanceCount=pool.replicas)
    if apart:
        machines = {"InstanceGroups": [_group(name, each) for name, each in apart]}
    checkpoint = {"S3Uri": layout.checkpoint} if layout.checkpoint else {}
    return present(
        ResourceConfig={**machines, **present(VolumeSizeInGB=pool.disk_gb)},
        StoppingCondition=present(
            MaxRuntimeInSeconds=layout.timeout, MaxWaitTimeInSeconds=layout.max_wait
        ),
        EnableManagedSpotTraining=layout.spot or None,
        CheckpointConfig=checkpoint,
    )


def _group(name: str, pool: Pool) -> dict[str, Any]:
    return present(InstanceGroupName=name, InstanceType=pool.machine, InstanceCount=pool.replicas)


def from_training_job(value: object) -> Imported:
    """Reads what `training_job` gives. Raises OptionError, naming the path, for anything else."""
    given = Given.of(value, "")
    machines, stop = given.below("ResourceConfig"), given.below("StoppingCondition")
    checkpoint = given.below("CheckpointConfig")
    disk = machines.number("VolumeSizeInGB")
    primary, workers = _pools(machines)
    layout = Layout(
        "sagemaker",
        primary=replace(primary, disk_gb=disk) if primary else None,
        workers=replace(workers, disk_gb=disk),
        scheduling="SPOT" if given.values.pop("EnableManagedSpotTraining", False) else None,
        timeout=stop.number("MaxRuntimeInSeconds"),
        max_wait=stop.number("MaxWaitTimeInSeconds"),
        checkpoint=checkpoint.text("S3Uri"),
    )
    return Imported("SageMaker training job", layout, given.done(machines, stop, checkpoint))


def _pools(machines: Given) -> tuple[Pool | None, Pool]:
    """The primary, where it is an instance group of its own, and the workers."""
    listed = machines.values.pop("InstanceGroups", None) or []
    path = machines.at("InstanceGroups")
    if not isinstance(listed, list):
        raise OptionError(f"{path} is {shown(listed)}; it has to be a list")
    apart = [_pool(Given.of(each, path)) for each in listed]
    if not apart:
        return None, _pool(machines)
    if len(apart) == 1:
        return None, apart[0]
    if len(apart) > 2 or apart[0].replicas != 1:
        raise OptionError(
            f"{path} has {len(apart)} groups, the first with {apart[0].replicas} instances; a "
            "layout has the primary, which is one instance, and the workers"
        )
    return apart[0], apart[1]


def _pool(given: Given) -> Pool:
    count = given.number("InstanceCount")
    return Pool(1 if count is None else count, given.text("InstanceType"))


def from_python(text: str) -> Imported:
    """Reads the estimator in a piece of Python, of version 1 or 2 of the SDK, without running it.

    Names stand for the literals that they were assigned. Raises OptionError if there is no
    estimator.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the text's escapes and literals
            tree = ast.parse(text)
        return _estimator(tree)
    except SyntaxError as wrong:
        raise OptionError(f"not Python: {wrong.msg} in line {wrong.lineno}") from None
    except (ValueError, RecursionError, MemoryError) as wrong:
        raise OptionError(
            f"this Python can't be read: {wrong or 'it is nested too deeply'}"
        ) from None


def _estimator(tree: ast.Module) -> Imported:
    names: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            sizes[name] = _size(statement.value, sizes)
            names[name] = _value(statement.value, names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_estimator(node):
            _size(node, sizes)
            given = {_OLD_NAMES.get(k.arg, k.arg): _value(k.value, names)
                     for k in node.keywords if k.arg}  # fmt: skip
            return _from_arguments(_called(node), given)
    raise OptionError("there is no call with the arguments instance_type and instance_count")


def _size(node: ast.expr, names: dict[str, int]) -> int:
    """How much it is, with what names stand for. Raises OptionError if that is too much."""
    parts = list(ast.walk(node))
    size = len(parts) + sum(names.get(each.id, 0) for each in parts if isinstance(each, ast.Name))
    if size > _MOST_PARTS:
        raise OptionError(f"line {node.lineno} stands for more than {_MOST_PARTS:,} values")
    return size


def _is_estimator(node: ast.Call) -> bool:
    arguments = {_OLD_NAMES.get(keyword.arg or "", keyword.arg) for keyword in node.keywords}
    return not arguments.isdisjoint(("instance_type", "instance_count", "instance_groups"))


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """A literal's value, with names looked up; None for what is neither."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Dict):
        return {
            key.value: _value(value, names)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    if isinstance(node, ast.List):
        return [_value(each, names) for each in node.elts]
    if isinstance(node, ast.Call) and _called(node) == InstanceGroup.__name__:
        given = dict(zip(InstanceGroup._fields, node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        told = {name: _value(each, names) for name, each in given.items()}
        if set(told) != set(InstanceGroup._fields):
            raise OptionError(f"an InstanceGroup has {', '.join(InstanceGroup._fields)}")
        return InstanceGroup(**told)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _from_arguments(name: str, given: dict[str, Any]) -> Imported:
    framework, number = _FRAMEWORKS.get(name), given.pop("framework_version", None)
    size, image = given.pop("volume_size", None), given.pop("image_uri", None)
    disk = None if size is None else whole(size, "volume_size")
    primary, workers = _pools(_machines(given))
    layout = Layout(
        "sagemaker",
        primary=replace(primary, disk_gb=disk) if primary else None,
        workers=replace(workers, disk_gb=disk),
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


def _machines(given: dict[str, Any]) -> Given:
    """The instances of an estimator's arguments, in the request's words."""
    listed = given.pop("instance_groups", None) or []
    if not isinstance(listed, list) or not all(isinstance(x, InstanceGroup) for x in listed):
        raise OptionError(
            f"instance_groups has to be a list of InstanceGroup(…), not {shown(listed)}"
        )
    single = present(
        InstanceType=given.pop("instance_type", None),
        InstanceCount=given.pop("instance_count", None),
    )
    return Given({**single, "InstanceGroups": [_told(each) for each in listed]})


def _told(group: InstanceGroup) -> dict[str, Any]:
    return present(InstanceType=group.instance_type, InstanceCount=group.instance_count)


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
