"""Sizing the Reduction Server, what it saves, totals, and what a field can take."""

from __future__ import annotations

import pytest
from hypothesis import given
from layout_strategies import examples, layouts

from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import OPTIONS, Layout, Pool, Role
from distrain_nb.layout.choices import choices, roles
from distrain_nb.layout.reduction_server import multi_region
from distrain_nb.layout.rules import check
from distrain_nb.layout.totals import totals
from distrain_nb.layout.traffic import HOP_S, size, traffic

JOB = Layout.of(
    "vertex",
    primary="n1-highmem-96+8*V100",
    workers="4*n1-highmem-96+8*V100",
    reducers="auto",
    region="us-central1",
)


@pytest.mark.parametrize(
    ("primary", "workers", "reducers"),
    [
        ("n1-highmem-96+8*V100", "4*n1-highmem-96+8*V100", Pool(16, "n1-highcpu-16")),
        ("a2-megagpu-16g+16*A100", "7*a2-megagpu-16g+16*A100", Pool(25, "n1-highcpu-16")),
    ],
)
def test_the_documents_pools_are_sized_as_there(primary: str, workers: str, reducers: Pool) -> None:
    layout = Layout.of("vertex", primary=primary, workers=workers, reducers="auto")
    assert layout.reducers == reducers
    assert check(layout) == ()
    fewer = layout.edited({"reducers.replicas": reducers.replicas - 1})
    assert [finding.code for finding in check(fewer)] == ["reducers-bandwidth"]


def test_a_pool_of_unknown_bandwidth_can_not_be_covered() -> None:
    with pytest.raises(OptionError, match="--reducers auto needs"):
        Layout.of("vertex", primary="ct5lp-hightpu-1t,topology=1x1", reducers="auto")
    with pytest.raises(OptionError, match="--reducers auto needs"):
        Layout.of("vertex", reducers="auto")


@pytest.mark.parametrize(
    ("region", "nearest"),
    [
        ("us-central1", "us"), ("southamerica-east1", "us"), ("europe-west4", "europe"),
        ("me-west1", "europe"), ("asia-east1", "asia"), ("australia-southeast1", "asia"),
        (None, "us"), ("mars-north1", "us"),
    ],
)  # fmt: skip
def test_nearest_multi_region(region: str | None, nearest: str) -> None:
    assert multi_region(region) == nearest


def test_a_reduction_server_halves_what_a_ring_sends() -> None:
    found = traffic(JOB, 1_000_000_000)
    sent = {way.name: way.bytes_per_worker for way in found.ways}
    assert sent == {"ring": 1.6e9, "tree": 2e9, "Reduction Server": 1e9}
    assert found.ways[2].seconds == pytest.approx(0.08 + 2 * HOP_S)
    many = traffic(JOB.edited({"workers.replicas": 999}), 1_000_000_000)
    assert many.ways[0].bytes_per_worker == pytest.approx(2e9, rel=0.002)
    assert many.ways[2].bytes_per_worker == 1e9
    assert "5 machines of 100 Gbit/s" in str(found) and "1.6 GB" in str(found)
    assert ">1.6 GB</td>" in found._repr_html_()


def test_traffic_needs_two_machines_and_their_bandwidth() -> None:
    with pytest.raises(OptionError, match="2 or more machines"):
        traffic(Layout.of("vertex", primary="n1-standard-4"), 1)
    with pytest.raises(OptionError, match="bandwidth of ct5lp-hightpu-1t is not known"):
        traffic(JOB.edited({"workers.machine": "ct5lp-hightpu-1t"}), 1)


@pytest.mark.parametrize(("count", "text"), [(999, "999 B"), (25e6, "25 MB"), (1.34e9, "1.34 GB")])
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text


def test_totals() -> None:
    found = totals(JOB)
    assert (found.replicas, found.accelerators, found.vcpu) == (21, 40, 5 * 96 + 16 * 16)
    assert found.memory_gb == pytest.approx(5 * 624 + 16 * 14.4)
    assert (found.training_gbps, found.reduction_gbps, found.bare) == (500, 512, ())
    assert totals(Layout.of(workers=2)).replicas == 3
    sagemaker = totals(Layout.of("sagemaker", workers="2*ml.p4d.24xlarge"))
    assert (sagemaker.accelerators, sagemaker.vcpu, sagemaker.training_gbps) == (16, 192, 800)
    assert totals(JOB.edited({"workers.machine": "x-1"})).bare == ("x-1",)
    assert "40 accelerators" in str(found) and "3,350.4 GB ·" in str(found)
    assert "2,304 GiB ·" in str(sagemaker)  # AWS counts in GiB


@examples
@given(layouts())
def test_totals_count_every_pool_and_choices_never_raise(layout: Layout) -> None:
    assert totals(layout).replicas == sum(max(pool.replicas, 0) for _, pool in layout.pools())
    for option in OPTIONS:
        choices(layout, option.field)
    for role in Role:
        for field in ("machine", "accelerator", "accelerator_count", "topology", "disk_type"):
            choices(layout, f"{role}.{field}")


@pytest.mark.parametrize(
    "layout",
    [
        JOB,
        Layout.of("vertex", primary="n1-standard-16+2*T4"),
        Layout.of("ai-platform", primary="n1-standard-16+2*K80"),
    ],
)
@pytest.mark.parametrize("field", ["machine", "accelerator_count"])
def test_choices_say_what_fits(layout: Layout, field: str) -> None:
    offered = choices(layout, f"primary.{field}")
    assert offered and [c.fits for c in offered] == sorted((c.fits for c in offered), reverse=True)
    for choice in offered:
        alone = Layout(layout.on, primary=layout.primary)
        changed = alone.edited({f"primary.{field}": choice.value})
        assert (errors(check(changed)) == ()) == choice.fits, choice


def test_regions_that_fit_come_first() -> None:
    offered = choices(JOB, "region")
    fitting = [choice.value for choice in offered if choice.fits]
    assert "us-central1" in fitting and "europe-west1" not in fitting
    for choice in offered:
        found = check(JOB.edited({"region": choice.value}))
        assert (errors(found) == ()) == choice.fits


def test_roles_of_places() -> None:
    assert roles("sagemaker") == (Role.PRIMARY, Role.WORKERS)
    assert roles("local") == tuple(Role)
