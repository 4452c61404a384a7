"""The fact tables as one immutable value, each table read when it is first looked at."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from distrain_nb.layout.catalog import rows

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.rows import Accelerator

    Row = TypeVar("Row", bound=NamedTuple)

    Overrides = Mapping[str, Iterable[Mapping[str, object]]]

_MAKER = re.compile(r"^NVIDIA_(TESLA_)?")
_MEMORY = re.compile(r"_\d+GB$")


def accelerator_names(accelerators: Iterable[Accelerator]) -> dict[str, str]:
    """Return every way to write each accelerator to its full name; what two could mean is left out.

    A form that keeps more of the name wins: `A100` is NVIDIA_TESLA_A100, though `A100` would also
    be left of NVIDIA_A100_80GB without its memory.
    """
    names: dict[str, str] = {}
    for forms in zip(*(_forms(row.accelerator) for row in accelerators), strict=True):
        fresh = [(form, full) for form, full in forms if form not in names]
        once = [form for form, _ in fresh]
        names.update((form, full) for form, full in fresh if once.count(form) == 1)
    return names


def normal(name: str) -> str:
    """Return the spelling that names are compared in."""
    return name.upper().replace("-", "_")


def _forms(full: str) -> Iterator[tuple[str, str]]:
    yield normal(full), full
    yield _MAKER.sub("TESLA_" if "TESLA" in full else "", full), full
    yield _MAKER.sub("", full), full
    yield _MEMORY.sub("", _MAKER.sub("", full)), full


DATA = Path(__file__).parent / "data"


def _number(text: str) -> float | None:
    if not text:
        return None
    value = float(text)
    return int(value) if value.is_integer() else value


_CONVERT: dict[str, Callable[[str], Any]] = {
    "str": str,
    "bool": lambda text: text == "yes",
    "Int": lambda text: int(text) if text else None,
    "Float": _number,
    "Ints": lambda text: tuple(int(item) for item in text.split(";")) if text else (),
    "Texts": lambda text: tuple(text.split(";")) if text else (),
}


def read(name: str, kind: type[Row]) -> Iterator[Row]:
    """Yield the rows of `data/NAME.csv`, whose header must be the fields of `kind`."""
    convert = _converters(kind)
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        if next(lines) != list(kind._fields):
            raise ValueError(f"{name}.csv: the header is not the fields of {kind.__name__}")
        for line in lines:
            yield kind._make(turn(cell) for turn, cell in zip(convert, line, strict=True))


def row_from(kind: type[Any], values: Mapping[str, object], base: Any = None) -> Any:
    """Return a row from values by column name, over an existing row or over empty cells.

    Raises ValueError naming a column that the table lacks, or a value that doesn't fit its column.
    """
    unknown = sorted(set(values) - set(kind._fields))
    if unknown:
        raise ValueError(f"no column {unknown[0]!r}; the columns are {', '.join(kind._fields)}")
    cells = {} if base is None else base._asdict()
    for column, turn in zip(kind._fields, _converters(kind), strict=True):
        if column in values or base is None:
            cells[column] = _turned(column, turn, values.get(column))
    return kind(**cells)


def _converters(kind: type[Any]) -> tuple[Callable[[str], Any], ...]:
    # NamedTuple wraps the postponed annotations of the row types
    notes: dict[str, Any] = kind.__annotations__
    return tuple(_CONVERT[getattr(note, "__forward_arg__", note)] for note in notes.values())


def _turned(column: str, turn: Callable[[str], Any], value: object) -> Any:
    try:
        return turn(_cell(value))
    except ValueError:
        raise ValueError(f"invalid {value!r} in the column {column!r}") from None


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ";".join(_cell(part) for part in value)
    return "" if value is None else str(value)


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
