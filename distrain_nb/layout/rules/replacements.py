"""What takes the place of machines that aren't offered where the job is to run: AI Platform's
legacy ones, and those of another cloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from distrain_nb.layout.catalog.accelerator_names import normal
from distrain_nb.layout.catalog.index import short_name
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.machine_order import accelerator_rank, machine_rank
from distrain_nb.layout.machine_words import Accelerators, accelerators_of
from distrain_nb.layout.offers import GpuMachine
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool, resolve
from distrain_nb.layout.rules.engine import Edit, Repair, at, repair

_LEGACY_TPU, _TPU = "cloud_tpu", "cloud-tpu"

# The 24 GB of an L4 are 22.35 in the tables of AWS, which count in GiB.
_ENOUGH = 0.9


def equipment(resolved: ResolvedPool) -> Accelerators | None:
    """Return a replica's accelerators: those asked for, or those that come with its machine."""
    name, count = resolved.pool.accelerator, resolved.pool.accelerator_count
    if not name or count < 1:
        return accelerators_of(resolved.catalog, resolved.pool.machine or "")
    row = resolved.catalog.accelerators.get(name)
    return Accelerators(count, name, row.memory_gb, row.kind) if row else Accelerators(count, name)


def accelerator_text(gpus: Accelerators) -> str:
    """`4 x K80`."""
    return f"{gpus.number} x {short_name(gpus.name)}"


def successors(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    """Yield machines of about the same size with as many GPUs of the same type; where the place has
    none, of the next, or with more. Where it has none of these either, a machine without."""
    role = resolved.role
    if _is_renamed(job, resolved):
        yield repair(f"Use {_TPU} for the {role}", **at(role, machine=_TPU))
        return
    had = equipment(resolved)
    offers = _fitting(job, resolved, had) if had and had.kind == "gpu" else []
    for offer in offers:
        yield _offered(job, role, offer, had)
    if not offers:
        yield _bare(job, resolved, had)


def tier_pool(job: ResolvedLayout, role: Role) -> Iterator[Repair]:
    """Yield a pool of one machine with the GPUs of the layout's scale tier, in the tier's place."""
    rows = job.catalog.legacy_machines
    tier = rows.get(job.layout.tier or "")
    if tier is None or not tier.accelerator:
        return
    has = (tier.accelerator, tier.accelerator_count)
    alike = next(r for r in rows.values() if (r.accelerator, r.accelerator_count) == has)
    one = resolve(job.layout.edited({role.value: Pool(1, alike.name)}), catalog=job.catalog)
    resolved = one.pool(role)
    for successor in successors(job, resolved) if resolved else ():
        yield Repair(successor.label, Edit((("tier", None), *successor.edit.changes)))


def _offered(
    job: ResolvedLayout, role: Role, offer: GpuMachine, had: Accelerators | None
) -> Repair:
    """Return a machine with its GPUs, which a request names on Google's places only."""
    gpus = offer.gpus
    is_same = had is None or (_is_same(gpus, had) and gpus.number == had.number)
    changed = "" if had is None or is_same else f" in place of {accelerator_text(had)}"
    is_named = job.offers is not None and job.offers.names_accelerators
    named = (gpus.name, gpus.number) if is_named else (None, 0)
    changes = {"machine": offer.machine, "accelerator": named[0], "accelerator_count": named[1]}
    return repair(
        f"Use {offer.machine} with {accelerator_text(gpus)}{changed}", **at(role, **changes)
    )


def _bare(job: ResolvedLayout, resolved: ResolvedPool, had: Accelerators | None) -> Repair:
    """Return a machine without accelerators, which says so where there were some."""
    offers = job.offers
    here = offers.plain_machines(job.catalog) if offers and resolved.vcpu else []
    machine = _nearest(resolved, here) if here else offers.default_machine if offers else None
    had_tpus = resolved.pool.machine == _LEGACY_TPU
    lost = f", without {accelerator_text(had)}" if had else ", without TPUs" if had_tpus else ""
    changes = {"machine": machine, "accelerator": None, "accelerator_count": 0}
    return repair(f"Use {machine} for the {resolved.role}{lost}", **at(resolved.role, **changes))


def _fitting(job: ResolvedLayout, resolved: ResolvedPool, had: Accelerators) -> list[GpuMachine]:
    """Return, for each GPU with enough memory, the machine with the fewest GPUs that suffice.

    A machine with the very same GPUs comes alone.
    """
    enough = [
        offer
        for offer in (job.offers.gpu_machines(job.catalog) if job.offers else ())
        if offer.gpus.number >= had.number
        and (offer.gpus.memory_gb or 0) >= _ENOUGH * _memory(job.catalog, had)
        and (_is_same(offer.gpus, had) or not _is_ending(job.catalog, offer.gpus.name))
    ]
    kinds: dict[tuple[str, float | None], list[GpuMachine]] = {}
    for offer in enough:
        kinds.setdefault((offer.gpus.name, offer.gpus.memory_gb), []).append(offer)
    candidates = [_of_kind(resolved, offers) for offers in kinds.values()]
    candidates.sort(key=lambda offer: _order(offer.gpus, had))
    first = candidates[0].gpus if candidates else had
    return candidates[:1] if first.number == had.number and _is_same(first, had) else candidates


def _of_kind(resolved: ResolvedPool, offers: list[GpuMachine]) -> GpuMachine:
    fewest = min(offer.gpus.number for offer in offers)
    few = {offer.machine: offer for offer in offers if offer.gpus.number == fewest}
    return few[_nearest(resolved, few)]


def _order(gpus: Accelerators, had: Accelerators) -> tuple[int, bool, float, int]:
    """Sort equal counts first, of these the same GPU, then the GPU with the least memory."""
    return (
        gpus.number,
        not _is_same(gpus, had),
        gpus.memory_gb or 0,
        accelerator_rank(gpus.name),
    )


def _is_same(one: Accelerators, other: Accelerators) -> bool:
    """Return whether a GPU is called by the same name, whatever its memory and network."""
    names = [short_name(gpus.name).partition("_")[0] for gpus in (one, other)]
    return names[0] == names[1]


def _memory(catalog: Catalog, gpus: Accelerators) -> float:
    row = catalog.accelerators.get(gpus.name)
    return gpus.memory_gb or (row.memory_gb if row else None) or 0


def _is_ending(catalog: Catalog, name: str) -> bool:
    """Return whether a GPU's support has ended, or is about to."""
    row = catalog.accelerators.get(catalog.accelerator_names.get(normal(name), name))
    return row is not None and row.status != "active"


def _nearest(resolved: ResolvedPool, machines: Iterable[str]) -> str:
    """Return the smallest machine that has as many vCPUs, or else the largest; then the one with
    the most similar memory."""
    catalog, vcpu_count = resolved.catalog, resolved.vcpu or 0

    def distance(name: str) -> tuple[bool, int, float, tuple[int, int, int]]:
        row = catalog.machines.get(name) or catalog.instances[name]
        vcpu, memory = row.vcpu or 0, row.memory_gb or 0
        apart = abs(memory - (resolved.memory_gb or 0))
        return vcpu < vcpu_count, abs(vcpu - vcpu_count), apart, machine_rank(catalog, name)

    return min(machines, key=distance)


def _is_renamed(job: ResolvedLayout, resolved: ResolvedPool) -> bool:
    """Return whether the place has a machine of TPUs under its newer name alone."""
    offered = job.offers.machines(job.catalog) if job.offers else {}
    return resolved.pool.machine == _LEGACY_TPU and _TPU in offered and _LEGACY_TPU not in offered
