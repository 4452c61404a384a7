"""Ranks of runs on a real Ray cluster, which shares no folder, ask whoever follows their run."""

from __future__ import annotations

import pytest

from tests.remote import asking

from .conftest import RayCluster

pytestmark = pytest.mark.slow


def test_a_rank_is_answered(cluster: RayCluster, home: object) -> None:
    asking.a_rank_is_answered(**cluster.options(workers=2))


def test_a_rank_is_stopped_where_it_is(cluster: RayCluster, home: object) -> None:
    asking.a_rank_is_stopped_where_it_is(**cluster.options(workers=2))
