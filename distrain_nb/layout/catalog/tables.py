"""The fact tables as one immutable value, each table read when it is first looked at."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.layout.catalog import rows
from distrain_nb.layout.catalog.names import accelerator_names
from distrain_nb.layout.catalog.reading import read, row_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    def machines(self) -> Mapping[str, rows.Machine]:
        return self._read("machines")

    @cached_property
    def accelerators(self) -> Mapping[str, rows.Accelerator]:
        return self._read("accelerators")

    @cached_property
    def accelerator_names(self) -> Mapping[str, str]:
        """Every way to write an accelerator, upper case and with underscores, to its full name."""
        return accelerator_names(self.accelerators.values())

    @cached_property
    def vertex_counts(self) -> Mapping[tuple[str, str], rows.GpuCounts]:
        return self._read("vertex_counts")

    @cached_property
    def ai_platform_counts(self) -> Mapping[tuple[str, str], rows.GpuCounts]:
        return self._read("ai_platform_counts")

    @cached_property
    def legacy_machines(self) -> Mapping[str, rows.LegacyMachine]:
        return self._read("legacy_machines")

    @cached_property
    def bandwidth_rules(self) -> Mapping[str, rows.BandwidthRule]:
        return self._read("bandwidth_rules")

    @cached_property
    def regions(self) -> Mapping[tuple[str, str, str], rows.Offer]:
        return self._read("regions")

    @cached_property
    def topologies(self) -> Mapping[tuple[str, str, str, str], rows.Topology]:
        return self._read("topologies")

    @cached_property
    def containers(self) -> Mapping[str, rows.PrebuiltContainer]:
        return self._read("containers")

    @cached_property
    def instances(self) -> Mapping[str, rows.Instance]:
        return self._read("instances")

    @cached_property
    def distributions(self) -> Mapping[str, rows.Distribution]:
        return self._read("distributions")

    @cached_property
    def devices(self) -> Mapping[str, rows.Device]:
        return self._read("devices")

    @cached_property
    def framework_builds(self) -> Mapping[tuple[str, str, str], rows.FrameworkBuild]:
        return self._read("framework_builds")

    @cached_property
    def limits(self) -> Mapping[tuple[str, str], rows.Limit]:
        return self._read("limits")

    @cached_property
    def sources(self) -> Mapping[str, rows.SourceDocument]:
        return self._read("sources")

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
