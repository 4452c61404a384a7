"""Repairs that several rules have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedPool
from distrain_nb.layout.rules.engine import Repair, at, repair

_BARE = {"accelerator": None, "accelerator_count": 0}


def without_accelerator(resolved: ResolvedPool) -> Iterator[Repair]:
    """Offer to remove a pool's accelerator."""
    yield repair(f"Remove the accelerator from the {resolved.role}", **at(resolved.role, **_BARE))


def without_pool(role: Role) -> Iterator[Repair]:
    """Offer to remove a pool."""
    yield repair(f"Remove the {role}", **{role.value: None})


def no_limit(field: str) -> Iterator[Repair]:
    """Offer to remove a limit."""
    yield repair("Set no limit of your own", **{field: None})


def standard_scheduling() -> list[Repair]:
    return [repair("Use standard scheduling", scheduling=None)]


def machines_like(model: ResolvedPool, pools: Iterable[ResolvedPool]) -> dict[str, Any]:
    """Return the machine and accelerators of one pool for others, as `repair` takes them."""
    return {
        f"{other.role.value}__{field}": getattr(model.pool, field)
        for other in pools
        for field in ("machine", "accelerator", "accelerator_count")
    }
