"""The `ModelTrainer` of SageMaker's SDK 3, written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.mappings import present
from distrain_nb.layout.layout import Layout
from distrain_nb.places.sagemaker.forms.request import groups, hosts

if TYPE_CHECKING:
    from distrain_nb.types import Unknown

_CONFIGS, _SHAPES = "sagemaker.core.training.configs", "sagemaker.core.shapes"
_SDK, _OURS = "sagemaker.train.distributed", "distrain_nb.places.sagemaker.distributed"
_MODULES = {
    "InstancePreference": _SHAPES,
    "Torchrun": _SDK,
    "MPI": _SDK,
    "ParameterServers": _OURS,
    "ModelTrainer": "sagemaker.train",
}
_LONGEST = 72
_LAUNCHERS = {"torchrun": "Torchrun", "mpi": "MPI", "parameter-server": "ParameterServers"}


@dataclass(frozen=True)
class _Made:
    """An object of the SDK; prints as the call that makes it."""

    name: str
    values: Mapping[str, Unknown]

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"{self.name}({text})"

    def written(self, indent: str) -> str:
        """Return the call, with a line for each argument where it is long."""
        line = repr(self)
        if len(line) <= _LONGEST:
            return line
        parts = []
        for name, value in self.values.items():
            text = repr(value)
            if isinstance(value, list) and len(text) > _LONGEST:
                members = "".join(f"{indent}        {member!r},\n" for member in value)
                text = f"[\n{members}{indent}    ]"
            parts.append(f"{indent}    {name}={text},\n")
        return f"{self.name}(\n{''.join(parts)}{indent})"


def trainer_text(layout: Layout) -> str:
    """Return the layout as a `ModelTrainer` that can be pasted into a notebook, with its
    imports."""
    pool = hosts(layout)
    arguments: dict[str, Unknown] = present(
        training_image=pool.image or layout.image or placeholders.TRAINING_IMAGE,
        role=placeholders.ROLE,
    )
    times = "max_wait_time_in_seconds" if layout.spot else "max_pending_time_in_seconds"
    parts = (
        ("source_code", _Made("SourceCode", {"entry_script": placeholders.ENTRY_POINT})),
        ("compute", _compute(layout)),
        ("distributed", _distributed(layout)),
        (
            "stopping_condition",
            _Made(
                "StoppingCondition",
                present(max_runtime_in_seconds=layout.timeout, **{times: layout.max_wait}),
            ),
        ),
        ("checkpoint_config", _Made("CheckpointConfig", present(s3_uri=layout.checkpoint))),
    )
    arguments |= {
        name: part for name, part in parts if part and (part.values or name == "distributed")
    }
    lines = "".join(
        f"    {name}={value.written('    ') if isinstance(value, _Made) else repr(value)},\n"
        for name, value in arguments.items()
    )
    return f"{_imports(arguments)}\nModelTrainer(\n{lines})\n"


def _compute(layout: Layout) -> _Made:
    pool, apart = hosts(layout), groups(layout)
    values: dict[str, Unknown] = {"instance_type": pool.machine, "instance_count": pool.replicas}
    if apart:
        values = {
            "instance_groups": [
                _Made(
                    "InstanceGroup",
                    {
                        "instance_group_name": name,
                        "instance_type": group.machine,
                        "instance_count": group.replicas,
                    },
                )
                for name, group in apart
            ]
        }
    elif pool.alternatives:
        choices = [pool.taking(number) for number in range(len(pool.machines))]
        shared = all(other.replicas is None for other in pool.alternatives)
        counts = [None if shared else choice.replicas for choice in choices]
        values = {
            "instance_preferences": [
                _Made(
                    "InstancePreference",
                    present(instance_type=choice.machine, instance_count=count),
                )
                for choice, count in zip(choices, counts, strict=True)
            ],
            "instance_count": pool.replicas if shared else None,
        }
    return _Made(
        "Compute",
        present(
            **values,
            volume_size_in_gb=pool.disk_gb,
            enable_managed_spot_training=layout.spot or None,
        ),
    )


def _distributed(layout: Layout) -> _Made | None:
    """Return what starts the ranks; SDK 3 launches in one instance group only."""
    name = _LAUNCHERS.get(layout.launcher)
    if name is None or groups(layout):
        return None
    is_mpi = name == "MPI"
    options = layout.mpi_options.split(" ") if is_mpi and layout.mpi_options else None
    has_ranks = name != "ParameterServers"
    ranks = layout.ranks_per_replica if has_ranks else None
    return _Made(name, present(process_count_per_node=ranks, mpi_additional_options=options))


def _imports(arguments: Mapping[str, Unknown]) -> str:
    """Return the lines that import what the arguments are made of."""
    classes = {"ModelTrainer"}
    rest = list(arguments.values())
    while rest:
        value = rest.pop()
        if isinstance(value, _Made):
            classes.add(value.name)
            rest += value.values.values()
        elif isinstance(value, list):
            rest += value
    modules: dict[str, list[str]] = {}
    for name in sorted(classes):
        modules.setdefault(_MODULES.get(name, _CONFIGS), []).append(name)
    return "".join(
        f"from {module} import {', '.join(names)}\n" for module, names in sorted(modules.items())
    )
