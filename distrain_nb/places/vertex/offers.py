"""The machines and other choices of Vertex AI, and what it shares with AI Platform Training:
machines of Compute Engine, and accelerators that requests name."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.index import counts, limit, short_name, takers, topologies
from distrain_nb.layout.catalog.rows import Machine
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.choices import Choice
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.machine_order import accelerator_rank
from distrain_nb.layout.machine_words import Accelerators
from distrain_nb.layout.offers import GpuMachine, Offers, SdkNames
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.resolved import ResolvedPool, resolve
from distrain_nb.places.vertex.rules.regions import common_regions, job_accelerators, regions_known

_SINGLE, _POD = 8, 32
_ACCELERATOR_TYPES = "aiplatform_v1/types/accelerator_type.py"


class GoogleOffers(Offers):
    """Machine types of Compute Engine, as the tables have them for one place."""

    place: ClassVar[str]
    default_machine = "n1-standard-4"
    plain_families = ("n1-",)
    names_accelerators = True
    regions = (re.compile(r"[a-z]+-[a-z]+\d+"), "us-central1")
    whole_job_role = Role.PRIMARY

    @staticmethod
    @abstractmethod
    def trains(row: Machine) -> bool:
        """Return whether the place offers a machine type for training."""

    def gpu_machines(self, catalog: Catalog) -> Iterator[GpuMachine]:
        yield from _gpu_machines(catalog, self.place)

    def plain_machines(self, catalog: Catalog) -> list[str]:
        rows = filter(self.trains, catalog.machines.values())
        return [r.machine_type for r in rows if r.machine_type.startswith(self.plain_families)]

    def knows(self, resolved: ResolvedPool) -> bool:
        return bool(resolved.machine or resolved.legacy)

    def choices(self, layout: Layout, field: str) -> Iterable[Choice]:
        choices = _OF_LAYOUTS.get(field)
        return choices(layout) if choices else ()

    def pool_choices(self, layout: Layout, pool: Pool, field: str) -> Iterable[Choice]:
        if field == "accelerator":
            return self._accelerators(layout, pool)
        if field == "accelerator_count":
            counts_of = self._takes(layout, pool.machine).get(pool.accelerator or "", ())
            return [Choice(count, str(count)) for count in counts_of]
        if field == "disk_type":
            names = limit(current(), layout.on, "boot_disk_types")
            return [Choice(None, "default"), *(Choice(name, name) for name in names)]
        return ()

    def _takes(self, layout: Layout, machine: str | None) -> Mapping[str, tuple[int, ...]]:
        """Return how many of each accelerator a machine takes."""
        return counts(current(), layout.on).get(machine or "", {})

    def _accelerators(self, layout: Layout, pool: Pool) -> Iterator[Choice]:
        fitting = self._takes(layout, pool.machine)
        machine = current().machines.get(pool.machine or "")
        yield Choice(None, "none", machine is None or not machine.accelerator_required)
        for name in sorted({*takers(current(), layout.on), *fitting}, key=accelerator_rank):
            row = current().accelerators.get(name)
            size = f" · {row.memory_gb:g} GB" if row and row.memory_gb else ""
            yield Choice(name, f"{short_name(name)}{size}", name in fitting)


class VertexOffers(GoogleOffers):
    """Vertex AI, with TPU slices, prebuilt containers and scheduling strategies."""

    place = "vertex"
    server_machine = "n1-highmem-8"

    @staticmethod
    def trains(row: Machine) -> bool:
        return row.vertex_training

    def machines(self, catalog: Catalog) -> Mapping[str, None]:
        return _trained_on(catalog)

    def sdk_accelerators(self) -> SdkNames:
        return _of_sdk()

    def larger(self, pool: Pool, gpus: int) -> Pool | None:
        takes = takers(current(), self.place).get(pool.accelerator or "", {})
        names = sorted(name for name in takes if gpus in takes[name])
        machine = pool.machine if pool.machine in names else next(iter(names), None)
        more = replace(pool, replicas=1, machine=machine, accelerator_count=gpus)
        return more if machine else None

    def choices(self, layout: Layout, field: str) -> Iterable[Choice]:
        if field == "scheduling":
            names = limit(current(), self.place, "scheduling_strategies")
            return [Choice(name, name) for name in names]
        return _images(layout) if field == "image" else super().choices(layout, field)

    def pool_choices(self, layout: Layout, pool: Pool, field: str) -> Iterable[Choice]:
        if field == "topology":
            rows = topologies(current()).get(pool.machine or "", ())
            return [Choice(r.topology, f"{r.topology} · {r.chips} chips, {r.scope}") for r in rows]
        return super().pool_choices(layout, pool, field)

    def with_own_accelerators(self, layout: Layout, role: Role) -> Layout:
        pool = layout.pool(role)
        row = current().machines.get(pool.machine or "") if pool else None
        if pool is None or row is None or pool.accelerator or pool.accelerator_count:
            return layout
        builtin = current().accelerators.get(row.builtin_accelerator)
        if builtin is None or builtin.kind != "gpu":
            return layout
        changes = {
            "accelerator": builtin.accelerator,
            "accelerator_count": row.builtin_accelerator_count,
        }
        return layout.edited({f"{role.value}.{field}": value for field, value in changes.items()})

    def why_no_reducers(self, *, on_gpus: bool) -> str:
        return "" if on_gpus else "Vertex AI's reducers are for GPUs alone"

    def _takes(self, layout: Layout, machine: str | None) -> Mapping[str, tuple[int, ...]]:
        if machine == "cloud-tpu":
            return {"TPU_V2": (_SINGLE, _POD, 2 * _POD), "TPU_V3": (_SINGLE, _POD, 2 * _POD)}
        return super()._takes(layout, machine)


@lru_cache(maxsize=8)
def _trained_on(catalog: Catalog) -> Mapping[str, None]:
    rows = catalog.machines.values()
    return dict.fromkeys(row.machine_type for row in rows if row.vertex_training)


@lru_cache(maxsize=8)
def _gpu_machines(catalog: Catalog, place: str) -> tuple[GpuMachine, ...]:
    rows = [catalog.accelerators[gpu] for gpu in takers(catalog, place)]
    return tuple(
        GpuMachine(machine, Accelerators(count, row.accelerator, row.memory_gb))
        for row in rows
        if row.kind == "gpu"
        for machine, counts in takers(catalog, place)[row.accelerator].items()
        for count in counts
    )


@lru_cache(maxsize=1)
def _of_sdk() -> SdkNames:
    """Read the names of GPUs from the code of google-cloud-aiplatform, since its import takes
    seconds.

    Return none if it isn't installed. TPUs come with machine types that name them.
    """
    try:
        spec = find_spec("google.cloud")
        package = f"google-cloud-aiplatform {version('google-cloud-aiplatform')}"
    except (ModuleNotFoundError, PackageNotFoundError):
        return SdkNames()
    folders = spec.submodule_search_locations if spec else None
    files = [Path(folder, _ACCELERATOR_TYPES) for folder in folders or ()]
    text = next((file.read_text(encoding="utf-8") for file in files if file.is_file()), "")
    names = re.findall(r"^    (?!TPU_|ACCELERATOR_TYPE_)([A-Z]\w+) = \d+$", text, re.MULTILINE)
    return SdkNames(frozenset(names), package)


def _regions(layout: Layout) -> Iterator[Choice]:
    wants = job_accelerators(resolve(layout))
    fitting = common_regions(current(), layout.on, wants)
    for name in regions_known(current(), layout.on):
        yield Choice(name, name, not wants or name in fitting)


def _frameworks(_: Layout) -> Iterator[Choice]:
    rows = current().containers.values()
    names = (f"{row.framework}-{row.framework_version}" for row in rows if row.framework_version)
    for name in dict.fromkeys(names):
        yield Choice(name, name)


def _images(layout: Layout) -> Iterator[Choice]:
    for row in current().containers.values():
        if row.framework_version:
            label = f"{row.framework} {row.framework_version}, Python {row.python_version}, "
            fits = layout.framework in (None, f"{row.framework}-{row.framework_version}")
            yield Choice(row.image_uri, label + row.accelerator.replace(";", " or "), fits)


_OF_LAYOUTS: dict[str, Callable[[Layout], Iterable[Choice]]] = {
    "region": _regions,
    "framework": _frameworks,
}
