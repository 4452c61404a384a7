"""The order of machines and accelerators in lists.

It is this package's judgement of what people choose, no fact of its tables. General purpose comes
first: primaries, servers and first tries run on it. Within it, the default series of a place leads.
GPUs follow, from smaller and older to larger and newer. That is roughly the order of their prices,
which differ by region and contract. Machines for special purposes come next, then those that are
about to go.
"""

from __future__ import annotations

from distrain_nb.layout.catalog.index import short_name
from distrain_nb.layout.catalog.tables import Catalog

_SERIES = (
    *("n1", "e2", "n2", "n4", "g2", "a2", "g4", "a3", "a4", "a4x", "c2", "m1"),
    *("ct5lp", "ct6e", "tpu7x", "cloud-tpu"),
    *("m5", "m7i", "m6i", "m8i", "m7i-flex", "m8i-flex", "t3"),
    *("c5", "c7i", "c6i", "c8i", "c7i-flex", "c8i-flex", "c5n"),
    *("g4dn", "g5", "g6", "g6e", "g7", "g7e", "p3", "p3dn", "p4d", "p4de", "p5", "p5en", "p5e"),
    *("p6-b200", "p6-b300", "p6e-gb200", "trn1", "trn1n", "trn2"),
    *("r5", "r7i", "r6i", "r8i", "r8i-flex", "r5d", "m4", "c4", "p2"),
)
_ACCELERATORS = (
    *("T4", "P4", "L4", "P100", "V100", "A100", "A100_80GB", "RTX_PRO_6000"),
    *("H100", "H100_MEGA", "H200", "B200", "GB200"),
)
_CHEAP_SERIES = ("n1", "e2", "g2", "m5", "t3", "g4dn")
_CHEAP_VCPU, _CHEAP_GPUS = 8, 1


def machine_rank(catalog: Catalog, name: str) -> tuple[int, int, int]:
    """Return a key that sorts machine types. Equal keys keep the order of their table."""
    row = catalog.machines.get(name)
    if row:
        return _place(_SERIES, row.series), accelerator_rank(row.builtin_accelerator), 0
    instance = catalog.instances.get(name)
    vcpu = (instance.vcpu if instance else None) or 0
    return _place(_SERIES, _series(name)), 0, vcpu


def accelerator_rank(name: str) -> int:
    """Return a key that sorts accelerators. No accelerator comes first."""
    return _place(_ACCELERATORS, short_name(name)) if name else -1


def is_cheap(catalog: Catalog, name: str) -> bool:
    """Return whether a machine is small, and of the first series of its kind."""
    row = catalog.machines.get(name)
    instance = catalog.instances.get(name)
    series = row.series if row else _series(name)
    vcpu = row.vcpu if row else instance.vcpu if instance else None
    gpus = row.builtin_accelerator_count if row else instance.gpu_count if instance else None
    small = (vcpu or _CHEAP_VCPU + 1) <= _CHEAP_VCPU and (gpus or 0) <= _CHEAP_GPUS
    return series in _CHEAP_SERIES and small


def _series(instance: str) -> str:
    """Return the series of a machine: `p4d` of `ml.p4d.24xlarge`."""
    return instance.removeprefix("ml.").partition(".")[0]


def _place(order: tuple[str, ...], name: str) -> int:
    return order.index(name) if name in order else len(order)
