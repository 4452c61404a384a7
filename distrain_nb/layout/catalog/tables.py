"""The fact tables as one immutable value, each table read when it is first looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.layout.catalog import rows
from distrain_nb.layout.catalog.accelerator_names import accelerator_names
from distrain_nb.layout.catalog.row_reader import read, row_from

if TYPE_CHECKING:
    Overrides = Mapping[str, Iterable[Mapping[str, object]]]


class Table(NamedTuple):
    """A table's row type, its file, and the columns that tell its rows apart. `documents` are the
    sources of a table whose rows don't name theirs."""

    kind: type[Any]
    file: str
    key: tuple[str, ...]
    documents: tuple[str, ...] = ()


TABLES: dict[str, Table] = {
    "machines": Table(rows.Machine, "gcp_machines", ("machine_type",)),
    "accelerators": Table(
        rows.Accelerator, "gcp_accelerators", ("accelerator",), ("GCE-GPU", "VERTEX-API")
    ),
    "vertex_counts": Table(
        rows.GpuCounts, "vertex_gpu_counts", ("machine_type", "accelerator"), ("VERTEX-CC",)
    ),
    "ai_platform_counts": Table(
        rows.GpuCounts, "aiplatform_gpu_counts", ("machine_type", "accelerator"), ("AIP-GPU",)
    ),
    "legacy_machines": Table(rows.LegacyMachine, "aiplatform_legacy_machines", ("name",)),
    "bandwidth_rules": Table(rows.BandwidthRule, "gcp_bandwidth_rules", ("rule",)),
    "regions": Table(rows.Offer, "regions", ("service", "accelerator", "region")),
    "topologies": Table(
        rows.Topology, "tpu_topologies", ("machine_type", "tpu", "topology", "accelerator_count")
    ),
    "containers": Table(
        rows.PrebuiltContainer, "vertex_prebuilt_containers", ("image_uri",), ("VERTEX-PBC",)
    ),
    "instances": Table(rows.Instance, "aws_training_instances", ("instance_type",)),
    "distributions": Table(rows.Distribution, "sagemaker_distributions", ("distribution",)),
    "devices": Table(rows.Device, "devices", ("name",)),
    "framework_builds": Table(
        rows.FrameworkBuild, "framework_builds", ("framework", "device", "min_version")
    ),
    "limits": Table(rows.Limit, "limits", ("service", "name")),
    "sources": Table(rows.SourceDocument, "sources", ("key",)),
}


class Catalog:
    """The fact tables, each a mapping from its key to its row, with a user's rows over them.

    `overrides` maps a table's name to rows given by column name. A row whose key is already there
    changes the columns that it names; any other row is added. Raises ValueError, when the table is
    first looked at, naming the table, the row's number and what is wrong with it.
    """

    machines: Mapping[str, rows.Machine]
    accelerators: Mapping[str, rows.Accelerator]
    vertex_counts: Mapping[tuple[str, str], rows.GpuCounts]
    ai_platform_counts: Mapping[tuple[str, str], rows.GpuCounts]
    legacy_machines: Mapping[str, rows.LegacyMachine]
    bandwidth_rules: Mapping[str, rows.BandwidthRule]
    regions: Mapping[tuple[str, str, str], rows.Offer]
    topologies: Mapping[tuple[str, str, str, str], rows.Topology]
    containers: Mapping[str, rows.PrebuiltContainer]
    instances: Mapping[str, rows.Instance]
    distributions: Mapping[str, rows.Distribution]
    devices: Mapping[str, rows.Device]
    framework_builds: Mapping[tuple[str, str, str], rows.FrameworkBuild]
    limits: Mapping[tuple[str, str], rows.Limit]
    sources: Mapping[str, rows.SourceDocument]

    def __init__(self, overrides: Overrides | None = None) -> None:
        self._overrides = dict(overrides or {})
        for name in self._overrides:
            if name not in TABLES:
                raise ValueError(f"no table {name!r}; the tables are {', '.join(TABLES)}")

    def table(self, name: str) -> Mapping[Any, Any]:
        """Return a table by its name in `TABLES`."""
        rows: Mapping[Any, Any] = getattr(self, name)
        return rows

    @cached_property
    def accelerator_names(self) -> Mapping[str, str]:
        """Every way to write an accelerator, upper case and with underscores, to its full name."""
        return accelerator_names(self.accelerators.values())

    if not TYPE_CHECKING:  # for checkers, there are the tables above alone

        def __getattr__(self, name: str) -> Mapping[Any, Any]:
            if name not in TABLES:
                raise AttributeError(f"no table {name!r}")
            return self.__dict__.setdefault(name, self._read(name))

    def _read(self, name: str) -> dict[Any, Any]:
        kind, file, key, _ = TABLES[name]
        key_of = _key_of(key)
        rows = {key_of(row): row for row in read(file, kind)}
        for number, values in enumerate(self._overrides.get(name, ()), start=1):
            try:
                row = _overridden(kind, key, values, rows)
            except ValueError as error:
                raise ValueError(f"table {name}, row {number}: {error}") from None
            rows[key_of(row)] = row
        return rows


def _key_of(key: tuple[str, ...]) -> Callable[[Any], Any]:
    if len(key) == 1:
        (only,) = key
        return lambda row: getattr(row, only)
    return lambda row: tuple(getattr(row, column) for column in key)


def _overridden(
    kind: type[Any], key: tuple[str, ...], values: Mapping[str, object], rows: dict[Any, Any]
) -> Any:
    if not isinstance(values, dict):
        raise ValueError(f"{values!r} is not a mapping of columns to values")
    if not values.get(key[0]):
        raise ValueError(f"it needs the column {key[0]!r}")
    fresh = row_from(kind, values)
    base = rows.get(_key_of(key)(fresh))
    return fresh if base is None else row_from(kind, values, base)
