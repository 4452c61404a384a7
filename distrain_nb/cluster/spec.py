"""A cluster, and how each of its replicas knows it: `CLUSTER_SPEC` and `TF_CONFIG`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from distrain_nb.layout import Role
from distrain_nb.worker.replica import contracts


@dataclass(frozen=True)
class Cluster:
    """The members of a cluster: the addresses (`host:port`) of each role's replicas, in order of
    index.

    `id` is the service's own name of the cluster, `job` the specification that the job was created
    from, and `trial` the number of the tuning trial, from 1, where there is one.
    """

    addresses: Mapping[Role, tuple[str, ...]]
    id: str
    job: Mapping[str, Any]
    trial: str | None = None

    @property
    def replicas(self) -> int:
        return sum(len(addresses) for addresses in self.addresses.values())

    @property
    def primary(self) -> str:
        return self.addresses[Role.PRIMARY][0]

    def members(self) -> Iterator[tuple[Role, int]]:
        """Yield each replica's role and index, in the order of the worker pools."""
        for role in Role:
            for index in range(len(self.addresses.get(role, ()))):
                yield role, index

    def cluster_spec(self, role: Role, index: int) -> dict[str, Any]:
        """Return the value of `CLUSTER_SPEC` for one replica."""
        return contracts.cluster_spec(self._by_name, role.value, index, self.job, self.trial)

    def tf_config(self, role: Role, index: int) -> dict[str, Any] | None:
        """Return the value of `TF_CONFIG`; None in a job of a single replica, which has none."""
        return contracts.tf_config(self._by_name, role.value, index, self.job, self.trial, self.id)

    @property
    def _by_name(self) -> dict[str, tuple[str, ...]]:
        return {role.value: addresses for role, addresses in self.addresses.items()}
