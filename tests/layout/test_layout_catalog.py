"""The tables: whole, in step with the packages that know the same, and open to the user's rows."""

from __future__ import annotations

import copy
import csv
from typing import TYPE_CHECKING

import pytest
import refresh_catalog

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout, Pool
from distrain_nb.layout.catalog import TABLES, Catalog, current, query, short_name
from distrain_nb.layout.catalog.index import bandwidth
from distrain_nb.layout.catalog.row_reader import DATA
from distrain_nb.layout.rules import check

if TYPE_CHECKING:
    from pathlib import Path


def test_every_row_of_every_file_is_in_its_table() -> None:
    for name, table in TABLES.items():
        with (DATA / f"{table.file}.csv").open(encoding="utf-8", newline="") as file:
            assert len(current().table(name)) == sum(1 for _ in csv.reader(file)) - 1


def test_every_source_key_is_explained() -> None:
    catalog = current()
    for name, table in TABLES.items():
        if "source" in table.kind._fields:
            for row in catalog.table(name).values():
                for key in filter(None, row.source.split(";")):
                    assert key in catalog.sources or key.endswith(".csv"), (name, row)


def test_every_short_name_reads_back() -> None:
    for name in current().accelerators:
        assert Pool(1, "m", short_name(name), 1).accelerator == name
    assert short_name("NVIDIA_TESLA_V100") == "V100"
    assert short_name("NVIDIA_A100_80GB") == "A100_80GB"


@pytest.mark.parametrize("difference", refresh_catalog.DIFFERENCES, ids=lambda d: d.__name__)
def test_tables_agree_with_installed_packages(difference: refresh_catalog.Difference) -> None:
    assert refresh_catalog.available(difference), "install the package: pip install '.[dev]'"
    assert difference() == []


def test_a_document_that_has_more_or_less_than_the_tables_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = copy.deepcopy(refresh_catalog._discovery())
    schemas = document["schemas"]
    machine = schemas["GoogleCloudAiplatformV1MachineSpec"]["properties"]
    machine["acceleratorType"]["enum"].remove("NVIDIA_B200")
    machine["acceleratorType"]["enum"].append("NVIDIA_R100")
    strategy = schemas["GoogleCloudAiplatformV1Scheduling"]["properties"]["strategy"]
    strategy["enumDeprecated"][strategy["enum"].index("SPOT")] = True
    monkeypatch.setattr(refresh_catalog, "_discovery", lambda online=False: document)
    assert refresh_catalog.vertex_document() == [
        "NVIDIA_R100: in the document, not in the table",
        "NVIDIA_B200: in the table, not in the document",
        "SPOT: a scheduling strategy of only one side",
    ]


def test_without_a_network_each_source_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh_catalog, "DISCOVERY", "http://127.0.0.1:9/document")
    monkeypatch.setattr(refresh_catalog, "PYPI", "http://127.0.0.1:9/{}")
    refresh_catalog._discovery.cache_clear()
    lines = refresh_catalog.news()
    assert len(lines) == 5 and all("does not answer (ConnectError" in line for line in lines)
    assert lines[1].startswith("botocore: PyPI")


def test_the_tables_have_the_dates_of_their_documents() -> None:
    lines = {line.split()[0]: line for line in str(query()).splitlines()[3:]}
    assert lines["vertex_counts"].endswith("92    2026-08-20")
    assert lines["accelerators"].endswith("2026-04-14 to 2026-11-06")
    assert lines["ai_platform_counts"].endswith("undated")
    assert lines["bandwidth_rules"].endswith(", some undated") and "2023-20" not in str(query())
    assert all(len(line.split()) > 2 for name, line in lines.items() if name != "sources")


@pytest.mark.parametrize(
    ("machine", "accelerator", "count", "gbps"),
    [
        ("n1-highmem-96", "NVIDIA_TESLA_V100", 8, 100),
        ("n1-highcpu-16", None, 0, 32),
        ("n1-standard-4", None, 0, 10),
        ("n1-standard-4", "NVIDIA_TESLA_T4", 1, 10),
        ("a2-megagpu-16g", "NVIDIA_TESLA_A100", 16, 100),
        ("a3-highgpu-8g", "NVIDIA_H100_80GB", 8, 1000),
        ("ml.p4d.24xlarge", None, 0, 400),
        ("ct5lp-hightpu-1t", None, 0, None),
        ("no-such-machine", None, 0, None),
    ],
)
def test_bandwidth(machine: str, accelerator: str | None, count: int, gbps: float | None) -> None:
    assert bandwidth(current(), machine, accelerator, count) == gbps


def test_a_user_adds_and_changes_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path))
    layout = Layout.of("vertex", primary="n9-standard-4+2*X900")
    assert {f.code for f in check(layout)} == {"machine-unknown", "accelerator-unknown"}
    file = tmp_path / "catalog.yaml"
    file.write_text(
        """
machines:
- {machine_type: n9-standard-4, vcpu: 4, memory_gb: 16, egress_gbps: 20, vertex_training: yes}
- {machine_type: n1-standard-4, memory_gb: 99}
accelerators:
- {accelerator: NVIDIA_X900, kind: gpu, status: active}
vertex_counts:
- {machine_type: n9-standard-4, accelerator: NVIDIA_X900, counts: [1, 2]}
"""
    )
    layout = Layout.of("vertex", primary="n9-standard-4+2*X900")
    assert layout.primary == Pool(1, "n9-standard-4", "NVIDIA_X900", 2)
    assert check(layout) == ()
    assert str(layout.primary) == "n9-standard-4+2*X900"
    assert current().machines["n1-standard-4"].memory_gb == 99
    assert current().machines["n1-standard-4"].vcpu == 4
    file.unlink()
    assert current().machines["n1-standard-4"].memory_gb == 15


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("robots: []", r"catalog\.yaml: no table 'robots'; the tables are machines"),
        ("machines: [{vcpu: 4}]", "table machines, row 1: it needs the column 'machine_type'"),
        ("machines: [{machine_type: x, arms: 2}]", "row 1: no column 'arms'"),
        ("machines: [{machine_type: x, vcpu: many}]", "invalid 'many' in the column 'vcpu'"),
        ("machines: [x]", "'x' is not a mapping"),
        ("{", r"catalog\.yaml"),
        ("- 1", r"catalog\.yaml"),
    ],
)
def test_a_bad_file_is_refused_by_place(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path))
    (tmp_path / "catalog.yaml").write_text(text)
    with pytest.raises(OptionError, match=says):
        current()


def test_overrides_do_not_touch_the_shipped_tables() -> None:
    changed = Catalog({"machines": [{"machine_type": "n1-standard-4", "vcpu": 5}]})
    assert changed.machines["n1-standard-4"].vcpu == 5
    assert Catalog().machines["n1-standard-4"].vcpu == 4


def test_look_up_finds_all_words_and_an_accelerators_regions() -> None:
    found = {grid.title: grid for grid in query("V100", "us-central1").grids}
    assert found["Regions"].rows == (("vertex", "NVIDIA_TESLA_V100", "us-central1", "yes", ""),)
    counts = found["Counts on Vertex AI"].rows
    assert ("n1-highmem-96", "NVIDIA_TESLA_V100", "8") in counts
    assert len(counts) == 17
    assert "Counts on Vertex AI" not in {g.title for g in query("v100", "europe-west1").grids}
    assert "n1-highmem-96" in str(query("v100", "us-central1"))
    assert ">n1-highmem-96</td>" in query("v100")._repr_html_()
    assert "Nothing in the catalog" in str(query("no-such-thing"))
    assert "machines" in str(query())
