"""AI Platform's legacy machine types, and what takes their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.layout.catalog.active import short_name
from distrain_nb.layout.catalog.index import takers
from distrain_nb.layout.rules.engine import Repair, at, repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.catalog.rows import LegacyMachine
    from distrain_nb.layout.pool import Role
    from distrain_nb.layout.resolved import ResolvedLayout

_BARE = "n1-highcpu-16"
_TPU = "cloud-tpu"
_FAMILY = "n1-"


def built_in(row: LegacyMachine) -> str:
    """`4 x K80`, or empty for a machine without GPUs."""
    return f"{row.accelerator_count} x {short_name(row.accelerator)}" if row.accelerator else ""


def successors(job: ResolvedLayout, role: Role, row: LegacyMachine) -> Iterator[Repair]:
    """Machines of Compute Engine in a legacy one's place, with as many GPUs of the same type, or
    of others where the place no longer has that one."""
    if not row.approx_machine_type:
        if row.name == "cloud_tpu" and _is_offered(job, _TPU):
            yield repair(f"Use {_TPU} for the {role}", **at(role, machine=_TPU))
        return
    if not row.accelerator or not row.accelerator_count:
        machine = _bare(job, row.approx_machine_type)
        yield repair(f"Use {machine} for the {role}", **at(role, machine=machine))
        return
    for name in _accelerators(job, row):
        machine = _fitting(job, row, name)
        if machine:
            had = "" if name == row.accelerator else f" in place of {built_in(row)}"
            yield repair(
                f"Use {machine} with {row.accelerator_count} x {short_name(name)}{had}",
                **at(
                    role,
                    machine=machine,
                    accelerator=name,
                    accelerator_count=row.accelerator_count,
                ),
            )


def _bare(job: ResolvedLayout, machine: str) -> str:
    return machine if _is_offered(job, machine) else _BARE


def _is_offered(job: ResolvedLayout, machine: str) -> bool:
    row = job.catalog.machines.get(machine)
    here = "aiplatform_training" if job.layout.on == "ai-platform" else "vertex_training"
    return row is not None and bool(getattr(row, here))


def _accelerators(job: ResolvedLayout, row: LegacyMachine) -> list[str]:
    """The machine's own where the place has it, else those with as much memory whose support goes
    on, the smaller first."""
    here = takers(job.catalog, job.layout.on)
    if row.accelerator in here:
        return [row.accelerator]
    known = job.catalog.accelerators
    least = known[row.accelerator].memory_gb or 0
    sizes = {
        name: known[name].memory_gb or 0
        for name in here
        if name in known and known[name].kind == "gpu" and known[name].status == "active"
    }
    return sorted((name for name, size in sizes.items() if size >= least), key=sizes.__getitem__)


def _fitting(job: ResolvedLayout, row: LegacyMachine, accelerator: str) -> str:
    """The smallest machine that takes the GPUs and is no smaller than the legacy one; of the same
    size, the one that is most like it. Empty if there is none."""
    vcpu = row.approx_vcpu or 0
    takes = takers(job.catalog, job.layout.on).get(accelerator, {})
    fitting = [
        machine
        for machine, allowed in takes.items()
        if row.accelerator_count in allowed
        and machine.startswith(_FAMILY)
        and (job.catalog.machines[machine].vcpu or 0) >= vcpu
    ]
    if row.approx_machine_type in fitting:
        return row.approx_machine_type
    memory = row.approx_memory_gb or 0
    return min(
        fitting,
        key=lambda name: (
            job.catalog.machines[name].vcpu or 0,
            abs((job.catalog.machines[name].memory_gb or 0) - memory),
        ),
        default="",
    )
