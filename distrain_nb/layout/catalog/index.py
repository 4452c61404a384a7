"""Answers to the rules' questions about the tables, from indexes that are built once a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from distrain_nb.layout.catalog.accelerator_names import normal
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.tables import Catalog

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.rows import BandwidthRule, PrebuiltContainer, Topology

Counts = tuple[int, ...]

_CACHED = 4096


def accelerator_name(text: str) -> str:
    """Return the full name of an accelerator written in any of its forms; unknown names as they
    are."""
    return current().accelerator_names.get(normal(text), text)


def short_name(accelerator: str) -> str:
    """Return the shortest form of an accelerator that reads back as the same one."""
    return _short_names(current()).get(accelerator, accelerator)


@lru_cache(maxsize=2)
def _short_names(catalog: Catalog) -> dict[str, str]:
    short: dict[str, str] = {}
    for form, full in catalog.accelerator_names.items():
        if len(form) <= len(short.get(full, full)):
            short[full] = form
    return short


@lru_cache(maxsize=8)
def counts(catalog: Catalog, place: str) -> Mapping[str, Mapping[str, Counts]]:
    """Return how many of an accelerator a machine takes at a place, by machine type and
    accelerator."""
    table = catalog.ai_platform_counts if place == "ai-platform" else catalog.vertex_counts
    counts_of: dict[str, dict[str, Counts]] = {}
    for row in table.values():
        counts_of.setdefault(row.machine_type, {})[row.accelerator] = row.counts
    return counts_of


@lru_cache(maxsize=8)
def takers(catalog: Catalog, place: str) -> Mapping[str, Mapping[str, Counts]]:
    """Return how many of an accelerator a machine takes at a place, by accelerator and machine
    type."""
    counts_of: dict[str, dict[str, Counts]] = {}
    for machine, accelerators in counts(catalog, place).items():
        for accelerator, allowed in accelerators.items():
            counts_of.setdefault(accelerator, {})[machine] = allowed
    return counts_of


@lru_cache(maxsize=8)
def offers(catalog: Catalog, place: str) -> Mapping[str, Mapping[str, str]]:
    """Return whether training gets an accelerator (yes, no or allowlist), by accelerator and
    region."""
    service = "aiplatform" if place == "ai-platform" else place
    regions_of: dict[str, dict[str, str]] = {}
    for row in catalog.regions.values():
        if row.service == service:
            regions_of.setdefault(row.accelerator, {})[row.region] = row.training
    return regions_of


@lru_cache(maxsize=8)
def topologies(catalog: Catalog) -> Mapping[str, tuple[Topology, ...]]:
    """Return the TPU slices of a machine type, by machine type."""
    rows_of: dict[str, tuple[Topology, ...]] = {}
    for row in catalog.topologies.values():
        if row.topology:
            rows_of[row.machine_type] = (*rows_of.get(row.machine_type, ()), row)
    return rows_of


@lru_cache(maxsize=_CACHED)
def bandwidth(
    catalog: Catalog, machine: str | None, accelerator: str | None, count: int
) -> float | None:
    """Return the most that a node sends, in Gbit/s; None if the machine or its figure is not
    known."""
    if machine is None:
        return None
    if machine in catalog.instances:
        return catalog.instances[machine].network_gbps
    row = catalog.machines.get(machine)
    if row is None:
        legacy = catalog.legacy_machines.get(machine)
        if legacy is None or not legacy.approx_machine_type:
            return None
        accelerators = legacy.accelerator_count or 0
        return bandwidth(
            catalog, legacy.approx_machine_type, legacy.accelerator or None, accelerators
        )
    rule = _rule(catalog, row.machine_type, accelerator if count else None, count)
    return row.egress_gbps if rule is None else _capped(rule, row.vcpu, row.egress_gbps)


def _rule(
    catalog: Catalog, machine: str, accelerator: str | None, count: int
) -> BandwidthRule | None:
    for rule in catalog.bandwidth_rules.values():
        if (
            fnmatchcase(machine, rule.machine_glob)
            and rule.accelerator == (accelerator or "")
            and rule.accelerator_count in ("any", str(count) if accelerator else "")
        ):
            return rule
    return None


def _capped(rule: BandwidthRule, vcpu: int | None, egress: float | None) -> float | None:
    if rule.cap_gbps is None:
        return egress
    if rule.gbps_per_vcpu is None or vcpu is None:
        return rule.cap_gbps
    return min(rule.cap_gbps, max(rule.floor_gbps or 0, rule.gbps_per_vcpu * vcpu))


def prebuilt(catalog: Catalog, image: str | None) -> PrebuiltContainer | None:
    """Return the prebuilt container behind an image URI of any multi-region and tag."""
    return _prebuilt(catalog).get(_unplaced(image)) if image else None


@lru_cache(maxsize=8)
def _prebuilt(catalog: Catalog) -> Mapping[str, PrebuiltContainer]:
    return {_unplaced(row.image_uri): row for row in catalog.containers.values()}


def _unplaced(image: str) -> str:
    path = image.partition("docker.pkg.dev/")[2] or image
    return path.partition("@")[0].rpartition(":")[0] or path


def limit(catalog: Catalog, place: str, name: str) -> tuple[str, ...]:
    """Return a list of names from the table of limits."""
    return catalog.limits[place, name].value


def figure(catalog: Catalog, place: str, name: str) -> int:
    """Return a single figure from the table of limits."""
    return int(catalog.limits[place, name].value[0])
