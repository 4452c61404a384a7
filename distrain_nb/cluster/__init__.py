"""What replicas and ranks are told of their cluster: the contracts, written in one place."""

from __future__ import annotations

from distrain_nb.cluster.launchers import choose
from distrain_nb.cluster.ranks import Rank, ranks, replica_environment
from distrain_nb.cluster.spec import Cluster

__all__ = ["Cluster", "Rank", "choose", "ranks", "replica_environment"]
