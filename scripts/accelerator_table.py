"""Writes the table of `docs/accelerators.md`: what each accelerator and framework gets where.

    python scripts/accelerator_table.py            # rewrites the file

It stands between two comments; what is outside of them is left alone.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.cluster.equipment import Stock, equip
from distrain_nb.cluster.launchers import PER_GPU, launcher_for
from distrain_nb.cluster.packages import Uses
from distrain_nb.findings import errors
from distrain_nb.layout import Layout, Pool
from distrain_nb.layout.catalog import current
from distrain_nb.layout.hardware import CPU, Hardware, hardware_of
from distrain_nb.places.sagemaker import containers as of_aws
from distrain_nb.places.vertex import containers as of_google
from distrain_nb.program.frameworks import frameworks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "accelerators.md"
BARE = "python:3.11-slim"
# The table is that of this day: containers end.
AS_OF = "2026-11-29"
TITLES = {"vertex": "Vertex AI", "sagemaker": "SageMaker"}
# What programs import, as requirements of the releases that the tables were checked with.
PROGRAMS = {
    "torch": ("torch==2.13.0",),
    "torch, torch_xla": ("torch==2.9.0", "torch_xla==2.9.0"),
    "tensorflow": ("tensorflow==2.21.0",),
    "jax": ("jax==0.10.2",),
}
_BLOCK = re.compile(r"<!-- accelerators -->.*?<!-- end of accelerators -->", re.DOTALL)


def layouts() -> Iterator[Layout]:
    """One for each machine with each accelerator that it takes, and for each TPU slice."""
    catalog = current()
    for row in catalog.vertex_counts.values():
        for count in row.counts:
            yield Layout("vertex", primary=Pool(1, row.machine_type, row.accelerator, count))
    for machine in catalog.machines.values():
        if machine.vertex_training and not machine.accelerator_required:
            yield Layout("vertex", primary=Pool(1, machine.machine_type))
    for part in catalog.topologies.values():
        cores = int(part.accelerator_count.rstrip("+") or 0)
        name = part.tpu if cores else None
        pool = Pool(1, part.machine_type, name, cores, topology=part.topology or None)
        yield Layout("vertex", primary=pool)
    for instance in catalog.instances:
        yield Layout("sagemaker", workers=Pool(2, instance))


@cache
def kinds() -> Counter[tuple[str, Hardware]]:
    """The places' kinds of hardware, and how many of the layouts have them."""
    return Counter((layout.on, hardware_of(layout)) for layout in layouts())


def uses(lines: tuple[str, ...], required: tuple[str, ...] = ()) -> Uses:
    """A program that imports these packages."""
    roots = {re.split("==|-cpu", line)[0] for line in lines}
    return Uses(frameworks_of(roots), frozenset(roots), lines, required)


def stock(place: str, named: str = "", option: str = "base", today: str = "") -> Stock:
    """What a place offers."""
    of = {"vertex": of_google.offered("us-central1"), "sagemaker": of_aws.offered("us-west-2")}
    return Stock(of[place], BARE, named, option, today)


def table() -> str:
    """A row for accelerators that are alike."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for place, hardware in kinds():
        cells = (TITLES[place], *(_cell(place, hardware, lines) for lines in PROGRAMS.values()))
        rows.setdefault(cells, []).append("no accelerator" if hardware.device == CPU
                                          else hardware.title)  # fmt: skip
    head = ("place", "accelerators", *(f"`import {name}`" for name in PROGRAMS))
    lines = [head, ("---",) * len(head)]
    lines += [(cells[0], ", ".join(dict.fromkeys(names)), *cells[1:])
              for cells, names in sorted(rows.items(), reverse=True)]  # fmt: skip
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(place: str, hardware: Hardware, lines: tuple[str, ...]) -> str:
    program = uses(lines)
    equipment = equip(program, hardware, stock(place, today=AS_OF))
    if errors(equipment.findings):
        return "refused"
    name = equipment.image.rpartition("/")[2]
    more = [line for line in equipment.requirements if line not in lines]
    launcher = launcher_for(program.imports)[0]
    ranks = "a rank for each device" if launcher in PER_GPU and hardware.processes else "one rank"
    parts = [f"`{name}`", *(f"`{line}`" for line in more), f"{launcher}, {ranks}"]
    return "<br>".join(parts)


def current_page() -> str:
    """The page with its table as the code has it now."""
    block = f"<!-- accelerators -->\n\n{table()}\n<!-- end of accelerators -->"
    text, times = _BLOCK.subn(lambda _: block, PAGE.read_text(encoding="utf-8"))
    if times != 1:
        raise ValueError(f"{PAGE.name} has {times} places for the table")
    return text


if __name__ == "__main__":
    PAGE.write_text(current_page(), encoding="utf-8")
