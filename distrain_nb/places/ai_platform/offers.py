"""The machines of AI Platform Training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import ClassVar

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.rows import Machine
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.choices import Choice
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.places.vertex.offers import GoogleOffers


class AiPlatformOffers(GoogleOffers):
    """The machines of AI Platform Training."""

    place = "ai-platform"
    why_no_pool: ClassVar[Mapping[Role, str]] = {
        Role.REDUCERS: ": reducers are for Vertex AI and this machine"
    }

    @staticmethod
    def trains(row: Machine) -> bool:
        return row.aiplatform_training

    def machines(self, catalog: Catalog) -> Mapping[str, None]:
        return _trained_on(catalog)

    def larger(self, pool: Pool, gpus: int) -> Pool | None:
        del pool, gpus
        return None

    def choices(self, layout: Layout, field: str) -> Iterable[Choice]:
        if field != "tier":
            return super().choices(layout, field)
        rows = [row for row in current().legacy_machines.values() if row.kind == "scale_tier"]
        return [Choice(r.name, f"{r.name} · {r.note}" if r.note else r.name) for r in rows]


@lru_cache(maxsize=8)
def _trained_on(catalog: Catalog) -> Mapping[str, None]:
    modern = [row.machine_type for row in catalog.machines.values() if row.aiplatform_training]
    legacy = [row.name for row in catalog.legacy_machines.values() if row.kind == "machine"]
    return dict.fromkeys([*modern, *legacy])
