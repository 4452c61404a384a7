"""Ray: a cluster that is there already, by its Jobs API."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from distrain_nb.backends.checks import Check, Health, installed
from distrain_nb.backends.remote.cells import StayingBackend
from distrain_nb.backends.remote.service import Pace
from distrain_nb.errors import DistrainError
from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.places.ray.options import RayJob, RayOptions
from distrain_nb.places.ray.terms import READS
from distrain_nb.types import JsonObject

if TYPE_CHECKING:
    from distrain_nb.backends.settings import Settled
    from distrain_nb.places.ray.plan import RayPlan
    from distrain_nb.places.ray.service import RayService

FOLDER = "ray"  # in a run's folder: what its job has written


class RayBackend(StayingBackend[RayOptions, "RayPlan"]):
    """Jobs on a Ray cluster: an actor a replica, which starts the ranks."""

    name, title, options = "ray", "Ray", RayOptions
    example: ClassVar[Mapping[str, str]] = {"workers": "2", "ranks_per_replica": "2"}
    reads = READS
    pace = Pace(look=0.5, quiet=0, arrival=5.0)  # the driver writes all before it ends
    extra = "ray"

    def machine(self, job: RayJob) -> Mapping[str, str]:
        """Ask the cluster for its nodes, within seconds."""
        from distrain_nb.places.ray.cluster import nodes
        from distrain_nb.places.ray.plan import CLUSTER, TROUBLE, address_of

        try:
            answer = nodes(str(address_of(job).value), job.options.credentials, job.environ)
        except DistrainError as error:
            return {TROUBLE: str(error)}
        return {} if answer is None else {CLUSTER: json.dumps(answer)}

    def settings(self, job: RayJob) -> Settled:
        from distrain_nb.places.ray.plan import address_of

        return {"address": address_of(job)}

    def offers(self, layout: Layout, path: str) -> Iterable[Choice]:
        from distrain_nb.places.ray.cluster import offers

        return offers(layout, path)

    def plan(self, job: RayJob) -> RayPlan:
        """Raise OptionError for options that can't be read."""
        from distrain_nb.places.ray.plan import plan

        return plan(job)

    def service(
        self,
        spec: JsonObject,
        endpoints: Mapping[str, str],  # noqa: ARG002
        folder: Path,
    ) -> RayService:
        from distrain_nb.places.ray.plan import RaySpec
        from distrain_nb.places.ray.service import RayService

        return RayService(RaySpec.of(spec), folder / FOLDER)

    def checks(self) -> Iterator[Check]:
        version = installed("ray")
        answer = f"ray {version}" if version else "not needed for addresses that begin with http"
        yield Check("packages", Health.GOOD, answer)

    def access(self, settled: Settled) -> Iterator[Check]:
        """Say which cluster answers, and what it has."""
        from distrain_nb.places.ray.cluster import about

        address = settled.get("address")
        yield from about(str(address.value) if address else "", os.environ)
