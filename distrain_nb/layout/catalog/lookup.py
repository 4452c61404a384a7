"""Looks things up in the catalog: `%distrain catalog v100 us-central1`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.index import offers, short_name
from distrain_nb.layout.catalog.tables import TABLES

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.tables import Catalog

_DAY = re.compile(r"\b(\d{4})-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])\b")


@dataclass(frozen=True)
class Grid:
    """A table that prints well as text and in a notebook."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = [self.head, tuple("─" * width for width in widths), *self.rows]
        text = "\n".join(_line(cells, widths) for cells in lines)
        return f"{self.title}\n{text}" if self.title else text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = _html_row("th", self.head)
        body = "".join(_html_row("td", row) for row in self.rows)
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class Lookup:
    """The rows of the catalog that hold every word of a query, a table a subject."""

    words: tuple[str, ...]
    grids: tuple[Grid, ...]

    def __str__(self) -> str:
        if not self.grids:
            return f"Nothing in the catalog has all of: {' '.join(self.words)}"
        return "\n\n".join(map(str, self.grids))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.grids:
            return f"<p>{escape(str(self))}</p>"
        return "".join(grid._repr_html_() for grid in self.grids)


def query(*words: str) -> Lookup:
    """Return the rows in which every word is found, in any case; without words, what tables there
    are."""
    catalog = current()
    if not words:
        return Lookup((), (_contents(catalog),))
    folded = tuple(word.lower() for word in words)
    grids = (_grid(subject, catalog, folded) for subject in _SUBJECTS)
    return Lookup(words, tuple(grid for grid in grids if grid.rows))


@dataclass(frozen=True)
class _Subject:
    """The view of a table: a title, the columns, and how a row fills them.

    `place` is where the row's accelerator is looked up, so that its regions are found as well.
    """

    title: str
    table: str
    head: tuple[str, ...]
    cells: Callable[[Any], Iterable[object]]
    place: str = ""


def _grid(subject: _Subject, catalog: Catalog, words: Sequence[str]) -> Grid:
    lines = []
    for row in catalog.table(subject.table).values():
        line = tuple(map(_text, subject.cells(row)))
        regions = _regions(catalog, subject.place, row.accelerator) if subject.place else ()
        if _has((*line, *regions), words):
            lines.append(line)
    return Grid(subject.head, tuple(lines), subject.title)


def _regions(catalog: Catalog, place: str, accelerator: str) -> Iterator[str]:
    offered = offers(catalog, place).get(accelerator, {})
    return (region for region, training in offered.items() if training != "no")


def _has(line: Sequence[str], words: Iterable[str]) -> bool:
    text = " ".join(line).lower()
    return all(word in text for word in words)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


def _contents(catalog: Catalog) -> Grid:
    rows = ((name, str(len(catalog.table(name))), dates(catalog, name)) for name in TABLES)
    title = "The catalog: add words to look something up"
    return Grid(("table", "rows", "documents of"), tuple(rows), title)


def dates(catalog: Catalog, table: str) -> str:
    """Return from when to when the documents are that a table comes from."""
    dates_of_documents = [catalog.sources[key].date for key in _documents(catalog, table)]
    days = sorted(filter(None, map(_day, dates_of_documents)))
    undated = "undated" if len(days) < len(dates_of_documents) else ""
    span = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    return ", some ".join(filter(None, (span, undated)))


def _documents(catalog: Catalog, table: str) -> set[str]:
    rows = catalog.table(table).values()
    named = {key for row in rows for key in getattr(row, "source", "").split(";")}
    return {key for key in (*named, *TABLES[table].documents) if key in catalog.sources}


def _day(date: str) -> str:
    """Return the day in a source's date, such as `rev. 20261106` or `mirror of 2026-08-22`; empty
    where it has none."""
    match = _DAY.search(date)
    return "-".join(match.groups()) if match else ""


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{c:<{w}}" for c, w in zip(cells, widths, strict=True)).rstrip()


def _html_row(tag: str, cells: Iterable[str]) -> str:
    """Return a row; a heading without words is an empty cell, since readers would announce it."""
    tags = ((tag if cell else "td", escape(cell)) for cell in cells)
    style = "style='text-align:left'"
    return "<tr>" + "".join(f"<{tag} {style}>{text}</{tag}>" for tag, text in tags) + "</tr>"


def _instance(row: Any) -> Iterator[object]:
    yield from (row.instance_type, row.vcpu, row.memory_gb)
    yield f"{row.gpu_count} x {row.gpu_name}" if row.gpu_count else row.neuron_name
    yield from (row.network_gbps, row.efa)


_SUBJECTS = (
    _Subject(
        "Machine types",
        "machines",
        ("machine type", "vCPU", "GB", "Gbit/s", "built in"),
        lambda row: (
            row.machine_type,
            row.vcpu,
            row.memory_gb,
            row.egress_gbps,
            f"{row.builtin_accelerator_count} x {short_name(row.builtin_accelerator)}"
            if row.builtin_accelerator
            else "",
        ),
    ),
    _Subject(
        "Accelerators",
        "accelerators",
        ("accelerator", "short", "GB", "status"),
        lambda row: (row.accelerator, short_name(row.accelerator), row.memory_gb, row.status),
        "vertex",
    ),
    _Subject(
        "Counts on Vertex AI",
        "vertex_counts",
        ("machine type", "accelerator", "counts"),
        lambda row: (row.machine_type, row.accelerator, row.counts),
        "vertex",
    ),
    _Subject(
        "Counts on AI Platform",
        "ai_platform_counts",
        ("machine type", "accelerator", "counts"),
        lambda row: (row.machine_type, row.accelerator, row.counts),
    ),
    _Subject(
        "Legacy machine types and scale tiers",
        "legacy_machines",
        ("name", "kind", "accelerator", "count", "about"),
        lambda row: (
            row.name,
            row.kind,
            row.accelerator,
            row.accelerator_count,
            row.approx_machine_type,
        ),
    ),
    _Subject(
        "Regions",
        "regions",
        ("service", "accelerator", "region", "training", "note"),
        lambda row: (row.service, row.accelerator, row.region, row.training, row.note),
    ),
    _Subject(
        "TPU topologies",
        "topologies",
        ("TPU", "machine type", "topology", "chips", "VMs"),
        lambda row: (row.tpu, row.machine_type, row.topology, row.chips, row.vms),
    ),
    _Subject(
        "Prebuilt containers of Vertex AI",
        "containers",
        ("framework", "version", "Python", "for", "image"),
        lambda row: (
            row.framework,
            row.framework_version,
            row.python_version,
            row.accelerator,
            row.image_uri,
        ),
    ),
    _Subject(
        "SageMaker instance types",
        "instances",
        ("instance type", "vCPU", "GiB", "accelerators", "Gbit/s", "EFA"),
        _instance,
    ),
    _Subject(
        "SageMaker distributions",
        "distributions",
        ("distribution", "launcher", "frameworks", "note"),
        lambda row: (row.distribution, row.launcher, row.frameworks, row.note),
    ),
    _Subject(
        "Limits",
        "limits",
        ("place", "limit", "value", "source", "note"),
        lambda row: (row.service, row.name, row.value, row.source, row.note),
    ),
)
