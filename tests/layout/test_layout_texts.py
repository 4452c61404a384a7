"""The text and YAML forms of pools and layouts: what is printed reads back equal."""

from __future__ import annotations

import pytest
from hypothesis import given
from layout_strategies import examples, layouts, pools

from distrain_nb.backends.plugins import find
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout, Pool, Role, load, save, saved
from distrain_nb.layout.durations import duration, seconds
from distrain_nb.layout.pool import Alternative


@examples
@given(pools())
def test_a_pool_reads_back_equal(pool: Pool) -> None:
    assert Pool.parse(str(pool)) == pool


@examples
@given(layouts())
def test_a_layout_reads_back_equal_from_its_line(layout: Layout) -> None:
    assert Layout.from_line(str(layout)) == layout


@examples
@given(layouts())
def test_a_layout_reads_back_equal_from_yaml(layout: Layout) -> None:
    assert Layout.from_yaml(layout.to_yaml()) == layout


@pytest.mark.parametrize(
    ("text", "pool"),
    [
        ("4", Pool(4)),
        ("2*ml.p4d.24xlarge", Pool(2, "ml.p4d.24xlarge")),
        ("n1-standard-4", Pool(1, "n1-standard-4")),
        ("4*n1-highmem-96+8*V100", Pool(4, "n1-highmem-96", "NVIDIA_TESLA_V100", 8)),
        ("n1-highmem-96+8*nvidia-tesla-v100", Pool(1, "n1-highmem-96", "NVIDIA_TESLA_V100", 8)),
        ("a2-highgpu-1g+1*A100", Pool(1, "a2-highgpu-1g", "NVIDIA_TESLA_A100", 1)),
        ("a2-ultragpu-1g+1*A100_80GB", Pool(1, "a2-ultragpu-1g", "NVIDIA_A100_80GB", 1)),
        ("a3-highgpu-8g+8*h100", Pool(1, "a3-highgpu-8g", "NVIDIA_H100_80GB", 8)),
        (
            "n1-standard-4,disk=pd-ssd:200",
            Pool(1, "n1-standard-4", disk_type="pd-ssd", disk_gb=200),
        ),
        ("ml.m5.large,disk=50", Pool(1, "ml.m5.large", disk_gb=50)),
        ("4*?+2*?", Pool(4, None, None, 2)),
        (
            "2*ml.p5.48xlarge|ml.p4d.24xlarge|4*ml.g5.48xlarge,disk=50",
            Pool(
                2,
                "ml.p5.48xlarge",
                disk_gb=50,
                alternatives=(
                    Alternative("ml.p4d.24xlarge"),
                    Alternative("ml.g5.48xlarge", 4),
                ),
            ),
        ),
    ],
)
def test_pool_forms(text: str, pool: Pool) -> None:
    assert Pool.parse(text) == pool


@pytest.mark.parametrize(
    "text", ["", "4*", "n1 4", "n1+8V100", "n1,disk=:", "n1,colour=red", "a|", "a|4"]
)
def test_a_bad_pool_is_refused_with_the_allowed_form(text: str) -> None:
    with pytest.raises(OptionError, match="expected"):
        Pool.parse(text)


def test_a_bad_option_names_itself_its_value_and_its_form() -> None:
    with pytest.raises(OptionError, match=r"--workers: invalid pool '4\*': expected \[REPLICAS"):
        Layout.of(workers="4*")
    with pytest.raises(OptionError, match=r"invalid --on 'Mars!': expected local\|vertex"):
        Layout.of("Mars!")
    with pytest.raises(OptionError, match=r"unknown layout option 'colour'"):
        Layout.of(colour="red")
    with pytest.raises(OptionError, match="unknown layout option '--colour'"):
        Layout.from_line("--colour red")
    with pytest.raises(OptionError, match="--timeout has no value"):
        Layout.from_line("--timeout")


def test_a_line_is_what_the_documents_show() -> None:
    layout = Layout.of(
        "vertex", primary="n1-highmem-96+8*V100", workers="4*n1-highmem-96+8*V100", spot=True
    )
    assert str(layout) == (
        "--on vertex --primary n1-highmem-96+8*V100 --workers 4*n1-highmem-96+8*V100 --spot"
    )


def test_local_has_one_primary_without_asking() -> None:
    layout = Layout.of(workers=2, servers=1, evaluators="1")
    assert [(role.value, pool.replicas) for role, pool in layout.pools()] == [
        ("primary", 1), ("workers", 2), ("servers", 1), ("evaluators", 1),
    ]  # fmt: skip
    assert layout.size == 5
    assert layout.replicas(Role.WORKERS) == 2


def test_sagemaker_workers_are_the_whole_job() -> None:
    layout = Layout.of("sagemaker", workers="2*ml.p4d.24xlarge")
    assert layout.size == 2


def test_named_layouts(tmp_path) -> None:
    layout = Layout.of("vertex", primary="n1-standard-4+1*T4")
    path = save(layout, "small", tmp_path / "layouts")
    assert path.read_text() == "on: vertex\nprimary: n1-standard-4+1*T4\n"
    assert load("small", tmp_path / "layouts") == load(str(path)) == layout
    assert saved(tmp_path / "layouts") == ("small",)
    with pytest.raises(OptionError, match=r"no layout 'big' .* Saved layouts: small"):
        load("big", tmp_path / "layouts")
    with pytest.raises(OptionError, match="invalid name"):
        save(layout, "../small", tmp_path)
    path.write_text("on: vertex\nworkers: 4*\n")
    with pytest.raises(OptionError, match=r"small\.yaml: --workers"):
        load("small", tmp_path / "layouts")


def test_edited_sets_fields_of_pools_by_path() -> None:
    layout = Layout.of("vertex", primary="n1-standard-4")
    edited = layout.edited(
        {"workers.machine": "n1-standard-8", "workers.replicas": 3, "region": "x"}
    )
    assert str(edited) == "--on vertex --primary n1-standard-4 --workers 3*n1-standard-8 --region x"


@pytest.mark.parametrize(("text", "value"), [("7d", 604800), ("1h30m", 5400), ("45", 45)])
def test_durations(text: str, value: int) -> None:
    assert seconds(text) == value == seconds(duration(value))


@pytest.mark.parametrize(
    ("cell", "repaired"),
    [
        ("%%distrain --on vertx --workers 2\n1", "%%distrain --on vertex --workers 2\n1"),
        ("%%distrain --launcher torchrn\nx", "%%distrain --launcher torchrun\nx"),
    ],
)
def test_a_value_that_is_nearly_one_has_a_repair_of_the_cell(cell: str, repaired: str) -> None:
    _, option, value, *_ = cell.replace("\n", " ").split(" ")
    with pytest.raises(OptionError) as refused:
        find(value) if option == "--on" else Layout.from_line(f"{option} {value}")
    ((fix,),) = (finding.fixes for finding in refused.value.findings)
    assert fix.apply(cell) == repaired
