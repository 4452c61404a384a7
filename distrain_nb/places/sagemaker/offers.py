"""The instance types and other choices of SageMaker's training jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import ClassVar

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.index import limit
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.choices import Choice
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.machine_order import machine_rank
from distrain_nb.layout.machine_words import accelerators_of, machine_words
from distrain_nb.layout.offers import GpuMachine, Offers, SdkNames
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.resolved import ResolvedPool
from distrain_nb.places.sagemaker.rules.distributions import distribution_of


class SageMakerOffers(Offers):
    """Instance types of SageMaker's training jobs."""

    default_machine = "ml.m5.xlarge"
    plain_families = ("ml.m5.", "ml.c5.", "ml.r5.")
    regions = (re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d+"), "us-east-1")
    memory_unit = "GiB"
    whole_job_role = Role.WORKERS
    hosts_serve = True
    why_no_pool: ClassVar[Mapping[Role, str]] = {
        Role.REDUCERS: ": reducers are for Vertex AI and this machine",
        Role.SERVERS: ": with the launcher parameter-server, every host runs a parameter server",
        Role.EVALUATORS: ": every host runs the same program",
    }

    def machines(self, catalog: Catalog) -> Mapping[str, None]:
        return dict.fromkeys(catalog.instances)

    def sdk_machines(self) -> SdkNames:
        if find_spec("botocore") is None:
            return SdkNames()
        from distrain_nb.places.sagemaker import model

        return SdkNames(model.instance_types(), f"botocore {version('botocore')}")

    def gpu_machines(self, catalog: Catalog) -> Iterator[GpuMachine]:
        yield from _gpu_machines(catalog)

    def plain_machines(self, catalog: Catalog) -> list[str]:
        return [name for name in catalog.instances if name.startswith(self.plain_families)]

    def knows(self, resolved: ResolvedPool) -> bool:
        return bool(resolved.instance)

    def larger(self, pool: Pool, gpus: int) -> Pool | None:
        rows = current().instances
        row_of_pool = rows.get(pool.machine or "")
        gpu_name = row_of_pool.gpu_name if row_of_pool else ""
        fitting = [
            (row.gpu_count, name)
            for name, row in rows.items()
            if gpu_name == row.gpu_name and row.gpu_count and row.gpu_count >= gpus
        ]
        return replace(pool, replicas=1, machine=min(fitting)[1]) if fitting else None

    def choices(self, layout: Layout, field: str) -> Iterable[Choice]:
        if field == "framework":
            names = dict.fromkeys(reversed(limit(current(), layout.on, "framework_versions")))
            return [Choice(name, name) for name in names]
        if field == "scheduling":
            return [Choice(name, name) for name in ("STANDARD", "SPOT")]
        return _distributions(layout) if field == "distribution" else ()

    def pool_choices(self, layout: Layout, pool: Pool, field: str) -> Iterable[Choice]:
        return _alternatives(layout, pool) if field == "alternatives" else ()

    def runs_mpi(self, layout: Layout) -> bool:
        row = distribution_of(layout, current())
        return "custom_mpi_options" in row.options if row else super().runs_mpi(layout)


@lru_cache(maxsize=8)
def _gpu_machines(catalog: Catalog) -> tuple[GpuMachine, ...]:
    having = ((name, accelerators_of(catalog, name)) for name in catalog.instances)
    return tuple(GpuMachine(name, had) for name, had in having if had and had.kind == "gpu")


def _distributions(layout: Layout) -> Iterator[Choice]:
    for row in current().distributions.values():
        if not row.launcher:
            fits = layout.framework_name in (None, *row.frameworks)
            yield Choice(row.distribution, row.distribution, fits)


def _alternatives(layout: Layout, pool: Pool) -> Iterator[Choice]:
    """Yield those that there are with one more machine type, behind what is still being typed."""
    catalog = current()
    if pool.machine is None:
        return
    listed = [it for it in pool.alternatives if it.machine in catalog.instances]
    first = _device(catalog, pool.machine)
    for name in sorted(catalog.instances, key=lambda it: machine_rank(catalog, it)):
        if name not in pool.machines:
            words = machine_words(catalog, layout.on, name)
            value = "|".join((*map(str, listed), name))
            fits = _device(catalog, name) == first
            yield Choice(value, f"{value} · {words.shown}", fits, words.has, words.takes)


def _device(catalog: Catalog, machine: str) -> str:
    has = accelerators_of(catalog, machine)
    return has.kind if has else "cpu"
