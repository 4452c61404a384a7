"""The contracts by which replicas and ranks know their cluster, written in one place."""

from __future__ import annotations

from distrain_nb.cluster.launchers import (
    PER_GPU,
    choose,
    framework_of,
    preload,
    process_findings,
    ranks_per_replica,
)
from distrain_nb.cluster.ranks import Rank, ranks, replica_environment, time_limit
from distrain_nb.cluster.spec import Cluster

__all__ = [
    "PER_GPU",
    "Cluster",
    "Rank",
    "choose",
    "framework_of",
    "preload",
    "process_findings",
    "ranks",
    "ranks_per_replica",
    "replica_environment",
    "time_limit",
]
