"""What lists offer, in which order, and what searches find: the machines with what is asked for."""

from __future__ import annotations

import pytest

from distrain_nb.layout import Layout, Pool
from distrain_nb.layout.catalog import current
from distrain_nb.layout.choices import Choice, choices
from distrain_nb.layout.machine_order import machine_rank
from distrain_nb.layout.place import place_of


def machines_of(place: str) -> list[str]:
    here = place_of(place)
    assert here and here.offers
    return [*here.offers.machines(current())]


def machines(place: str) -> tuple[Choice, ...]:
    return choices(Layout(place, workers=Pool()), "workers.machine")


@pytest.mark.parametrize(
    ("place", "machine", "shown", "has"),
    [
        ("vertex", "a3-highgpu-8g", "8 × H100 (80 GB), 208 vCPU, 1,872 GB", "8gpu 80gb"),
        ("vertex", "n1-standard-4", "4 vCPU, 15 GB, 10 Gbit/s, takes T4, P4, P100, V100", "cheap"),
        ("sagemaker", "ml.p4d.24xlarge", "8 × A100 (40 GB), 96 vCPU, 1,152 GiB", "8gpu 40gb"),
        ("sagemaker", "ml.g4dn.xlarge", "1 × T4 (16 GB), 4 vCPU, 16 GiB", "1gpu 16gb cheap"),
        ("ai-platform", "complex_model_m_v100", "4 × V100, about n1-standard-16", "4gpu"),
    ],
)
def test_a_row_has_what_the_tables_know(place: str, machine: str, shown: str, has: str) -> None:
    (row,) = [choice for choice in machines(place) if choice.value == machine]
    assert row.label.startswith(f"{machine} · {shown}")
    assert row.has == has
    if place != "ai-platform":
        assert " Gbit/s" in row.label


@pytest.mark.parametrize("place", ["vertex", "sagemaker", "ai-platform"])
def test_lists_begin_with_general_purpose_and_have_all(place: str) -> None:
    names = [choice.value for choice in machines(place)]
    assert set(names) == set(machines_of(place))
    assert str(names[0]).startswith("ml.m5." if place == "sagemaker" else "n1-standard-4")


def test_every_series_of_the_tables_has_its_place() -> None:
    last = machine_rank(current(), "new-machine")[0]
    for place in ("vertex", "sagemaker"):
        for name in machines_of(place):
            assert machine_rank(current(), name)[0] < last, name


def test_gpus_rise_from_the_small_to_the_large() -> None:
    names = [choice.value for choice in machines("vertex")]
    order = ["g2-standard-4", "a2-highgpu-1g", "a2-ultragpu-1g", "a3-highgpu-1g", "a4x-highgpu-4g"]
    assert sorted(order, key=names.index) == order
    offered = choices(Layout("vertex", workers=Pool(1, "n1-standard-4")), "workers.accelerator")
    assert [c.label for c in offered if c.fits][:3] == ["none", "T4 · 16 GB", "P4 · 8 GB"]
    assert offered[-1].label == "GB200 · 186 GB"


def test_a_boot_disk_has_one_of_the_types_of_the_place() -> None:
    layout = Layout("vertex", workers=Pool(1, "n1-standard-4"))
    offered = [choice.value for choice in choices(layout, "workers.disk_type")]
    assert offered[0] is None and {"pd-ssd", "pd-standard"} <= {*offered}
    for field in ("machine", "accelerator", "accelerator_count"):
        assert "pd-ssd" not in [choice.value for choice in choices(layout, f"workers.{field}")]


def test_cheap_ones_are_small() -> None:
    for place in ("vertex", "sagemaker"):
        cheap = [str(choice.value) for choice in machines(place) if "cheap" in choice.has]
        assert cheap
        for name in cheap:
            row = current().machines.get(name) or current().instances[name]
            assert row.vcpu <= 8
