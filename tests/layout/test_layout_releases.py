"""Versions of frameworks compare as versions do, and what is none stops no check."""

from __future__ import annotations

import pytest

from distrain_nb.layout import Layout
from distrain_nb.layout.releases import is_of, older, releases
from distrain_nb.layout.rules import check


def test_versions_compare_as_numbers_do() -> None:
    assert older("2.9", "2.10")
    assert not older("2.10.1", "2.10")
    assert older("2.4rc1", "2.4")
    assert not older("2.x", "2.10")
    assert not older(None, "2.10")


def test_a_version_is_of_its_release() -> None:
    assert is_of("2.4.1", "2.4")
    assert not is_of("2.40", "2.4")
    assert not is_of("2.4", "2.x")
    assert is_of("2.4", None)


def test_releases_are_those_of_one_framework() -> None:
    assert releases(("pytorch-2.4", "mxnet-1.9", "pytorch-2.10"), "pytorch") == ("2.4", "2.10")


@pytest.mark.parametrize("place", ["vertex", "sagemaker"])
@pytest.mark.parametrize("version", ["2.x", "1..2", "2_"])
def test_what_is_no_version_is_checked_all_the_same(place: str, version: str) -> None:
    layout = Layout.of(
        place, workers="2*ml.p3.16xlarge", reducers="4", framework=f"pytorch-{version}"
    )
    for launcher in ("mpi", "torchrun", "parameter-server"):
        assert check(layout.edited({"launcher": launcher}))
