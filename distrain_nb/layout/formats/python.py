"""SageMaker's SDK in Python, read without running it: estimators of versions 1 and 2, and the
`ModelTrainer` of version 3 (facts: SM-SDK)."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.formats.pieces import Given, Imported, as_arguments, present, unchosen
from distrain_nb.layout.formats.placeholders import WORDS
from distrain_nb.layout.formats.sagemaker import CLASSES, InstanceGroup, pools_of
from distrain_nb.layout.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.types import Json

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
_MOST_PARTS = 10_000


@dataclass(frozen=True)
class _Made:
    """What a class of the SDK is given by name."""

    name: str
    values: dict[str, object]


class _Unread:
    """An expression that only running it would tell."""


def from_python(text: str) -> Imported:
    """Reads the estimator or trainer in a piece of Python.

    Names stand for the literals that they were assigned. Raises OptionError if there is none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the text's escapes and literals
            tree = ast.parse(text)
        return _read(tree)
    except SyntaxError as wrong:
        raise OptionError(f"not Python: {wrong.msg} in line {wrong.lineno}") from None
    except (ValueError, RecursionError, MemoryError) as wrong:
        raise OptionError(f"unreadable Python: {wrong or 'it is nested too deeply'}") from None


def _read(tree: ast.Module) -> Imported:
    names: dict[str, object] = {}
    sizes: dict[str, int] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            sizes[name] = _size(statement.value, sizes)
            names[name] = _value(statement.value, names)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    trainers = [call for call in calls if _called(call) == _TRAINER]
    found = trainers or [call for call in calls if _is_estimator(call)]
    if not found:
        raise OptionError("there is no call with the arguments instance_type and instance_count")
    _size(found[0], sizes)
    given, left = _arguments(found[0], names)
    read = _from_trainer(given) if trainers else _from_estimator(_called(found[0]), given)
    others = [f"{_called(call)}(…) in line {call.lineno}" for call in found[1:]]
    return replace(read, left_out=(*read.left_out, *left, *others))


def _size(node: ast.expr, names: dict[str, int]) -> int:
    """How much it is, with what names stand for. Raises OptionError if that is too much."""
    parts = list(ast.walk(node))
    size = len(parts) + sum(names.get(each.id, 0) for each in parts if isinstance(each, ast.Name))
    if size > _MOST_PARTS:
        raise OptionError(f"line {node.lineno} stands for more than {_MOST_PARTS:,} values")
    return size


def _is_estimator(node: ast.Call) -> bool:
    if _called(node) == InstanceGroup.__name__:
        return False
    arguments = {_OLD_NAMES.get(keyword.arg or "", keyword.arg) for keyword in node.keywords}
    return not arguments.isdisjoint(("instance_type", "instance_count", "instance_groups"))


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _arguments(call: ast.Call, names: dict[str, object]) -> tuple[dict[str, object], list[str]]:
    """The arguments by name, and those that can't be read or have none."""
    left = [ast.unparse(argument) for argument in call.args]
    left += [f"**{ast.unparse(k.value)}" for k in call.keywords if k.arg is None]
    given: dict[str, object] = {}
    for keyword in call.keywords:
        if keyword.arg is not None:
            name = _OLD_NAMES.get(keyword.arg, keyword.arg)
            value, unread = _known(_value(keyword.value, names), name)
            given[name] = value
            left += unread
    return given, left


def _known(value: object, path: str) -> tuple[object, list[str]]:
    """A value without what can't be read, and the paths of that."""
    if isinstance(value, _Unread):
        return None, [path]
    if isinstance(value, _Made):
        values, left = _known_values(value.values, path)
        return _Made(value.name, values), left
    return _known_values(value, path) if isinstance(value, dict) else (value, [])


def _known_values(values: Mapping[str, object], path: str) -> tuple[dict[str, object], list[str]]:
    known: dict[str, object] = {}
    left: list[str] = []
    for key, inner in values.items():
        clean, unread = _known(inner, f"{path}.{key}")
        left += unread
        if not isinstance(inner, _Unread):
            known[key] = clean
    return known, left


def _value(node: ast.expr, names: dict[str, object]) -> object:
    """A literal's value, with names looked up; a placeholder may stand without quotes."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id if node.id in WORDS else _Unread())
    if isinstance(node, ast.Dict):
        return {
            key.value if isinstance(key, ast.Constant) else f"**{ast.unparse(value)}": (
                _value(value, names) if isinstance(key, ast.Constant) else _Unread()
            )
            for key, value in zip(node.keys, node.values, strict=True)
        }
    if isinstance(node, ast.List):
        values = [_value(each, names) for each in node.elts]
        return _Unread() if any(isinstance(each, _Unread) for each in values) else values
    if isinstance(node, ast.Call) and _called(node) == InstanceGroup.__name__:
        given = dict(zip(InstanceGroup._fields, node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        group = {name: _value(each, names) for name, each in given.items()}
        if set(group) != set(InstanceGroup._fields):
            raise OptionError(f"an InstanceGroup has {', '.join(InstanceGroup._fields)}")
        return InstanceGroup._make(group[name] for name in InstanceGroup._fields)
    if isinstance(node, ast.Call) and _called(node)[:1].isupper() and not node.args:
        return _Made(_called(node), {k.arg or "**": _value(k.value, names) for k in node.keywords})
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return _Unread()


def _from_estimator(name: str, values: dict[str, object]) -> Imported:
    given = Given(values)
    framework, number = _FRAMEWORKS.get(name), given.text("framework_version")
    disk, spot = given.number("volume_size"), given.values.pop("use_spot_instances", None)
    primary, workers = pools_of(_machines(given))
    layout = Layout(
        "sagemaker",
        primary=replace(primary, disk_gb=disk) if primary else None,
        workers=replace(workers, disk_gb=disk),
        framework=f"{framework}-{number}" if framework and number else framework,
        image=given.text("image_uri"),
        scheduling="SPOT" if spot else None,
        timeout=given.number("max_run"),
        max_wait=given.number("max_wait"),
        checkpoint=given.text("checkpoint_s3_uri"),
    )
    layout, left = _distributed(layout, given)
    if number and not framework:
        left = (*left, "framework_version")
    script = _script(given, "entry_point", given)
    return Imported("SageMaker estimator", layout, (*given.rest(), *left), script)


def _script(given: Given, entry: str, hyper: Given) -> tuple[str, ...]:
    """The script by its path from the notebook's folder, and hyperparameters as its arguments."""
    folder = str(given.values.get("source_dir") or "")
    if "://" in folder or unchosen(folder) or (name := given.text(entry)) is None:
        return ()
    given.values.pop("source_dir", None)
    values = hyper.values.get("hyperparameters")
    if not isinstance(values, dict):
        return (PurePosixPath(folder, name).as_posix(),)
    del hyper.values["hyperparameters"]
    return PurePosixPath(folder, name).as_posix(), *as_arguments(values)


def _machines(given: Given) -> Given:
    """The instances of an estimator's arguments, in the request's words."""
    listed = given.values.pop("instance_groups", None) or []
    if not isinstance(listed, list) or not all(isinstance(x, InstanceGroup) for x in listed):
        raise OptionError(
            f"invalid instance_groups {shown(listed)}: expected a list of InstanceGroup(…)"
        )
    return Given(
        {
            "InstanceType": given.values.pop("instance_type", None),
            "InstanceCount": given.values.pop("instance_count", None),
            "InstanceGroups": [_as_request(each) for each in listed],
        }
    )


def _as_request(group: InstanceGroup) -> dict[str, Json]:
    return present(InstanceType=group.instance_type, InstanceCount=group.instance_count)


def _distributed(layout: Layout, given: Given) -> tuple[Layout, tuple[str, ...]]:
    """The layout with the launcher, distribution and MPI options of a `distribution` argument."""
    argument = given.below("distribution")
    left: list[str] = []
    for name, values in _flat(argument.values):
        options = Given.of(values or {}, argument.at(name))
        row = current().distributions.get(name)
        launcher = row.launcher if row else ""
        taken = layout.launcher != "auto" if launcher else layout.distribution
        if not options.values.pop("enabled", False) or taken:
            left += [argument.at(name)] if taken else options.rest()
            continue
        if launcher:
            layout = replace(layout, launcher=launcher)
        else:
            layout = replace(layout, distribution=name)
        if "processes_per_host" in options.values:
            layout = replace(layout, ranks_per_replica=options.number("processes_per_host"))
        if "custom_mpi_options" in options.values:
            layout = replace(layout, mpi_options=options.word("custom_mpi_options"))
        left += options.rest()
    return layout, tuple(left)


def _flat(argument: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The distributions of an estimator's argument by full name, `smdistributed.dataparallel`."""
    for name, options in argument.items():
        if name == "smdistributed" and isinstance(options, dict):
            yield from ((f"{name}.{inner}", value) for inner, value in options.items())
        else:
            yield name, options


def _from_trainer(values: dict[str, object]) -> Imported:
    given = Given(values)
    compute, stop = _part(given, "compute"), _part(given, "stopping_condition")
    checkpoint = _part(given, "checkpoint_config")
    disk, spot = compute.number("volume_size_in_gb"), "enable_managed_spot_training"
    is_spot = compute.values.pop(spot, None)
    primary, workers = pools_of(_machines(compute))
    layout = Layout(
        "sagemaker",
        primary=replace(primary, disk_gb=disk) if primary else None,
        workers=replace(workers, disk_gb=disk),
        image=given.text("training_image"),
        scheduling="SPOT" if is_spot else None,
        timeout=stop.number("max_runtime_in_seconds"),
        max_wait=stop.number("max_wait_time_in_seconds"),
        checkpoint=checkpoint.text("s3_uri"),
    )
    layout, left = _launched(layout, given)
    code = _part(given, "source_code")
    script = _script(code, "entry_script", given)
    rest = (each for part in (given, compute, stop, checkpoint, code) for each in part.rest())
    return Imported("SageMaker ModelTrainer", layout, (*rest, *left), script)


def _part(given: Given, key: str) -> Given:
    """What an argument's class is given, or the argument is as a mapping."""
    value = given.values.pop(key, None)
    return Given.of(value.values if isinstance(value, _Made) else value or {}, given.at(key))


def _launched(layout: Layout, given: Given) -> tuple[Layout, Iterator[str]]:
    """The layout with what a trainer's `distributed` says."""
    how = given.values.get("distributed")
    if not isinstance(how, _Made) or how.name not in _LAUNCHERS:
        return layout, iter(())
    options = _part(given, "distributed")
    more = options.values.pop("mpi_additional_options", None) or []
    listed = more if isinstance(more, list | tuple) else [more]
    said = options.word("mpi_options") or " ".join(map(str, listed))
    layout = replace(
        layout,
        launcher=_LAUNCHERS[how.name],
        ranks_per_replica=options.number("process_count_per_node"),
        mpi_options=said or None,
    )
    return layout, iter(options.rest())
