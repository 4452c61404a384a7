"""The forms of the clouds: the documents' examples go in and come out, and so does all else."""

from __future__ import annotations

import contextlib
import json

import documents
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from layout_strategies import examples, layouts, whole_layouts

from distrain_nb.errors import OptionError
from distrain_nb.findings import Severity
from distrain_nb.layout import PLACES, Layout, Pool, Role
from distrain_nb.layout.formats import Export, all_exports, exports, exports_of, left_out, read_any
from distrain_nb.layout.rules import check
from distrain_nb.places.ai_platform.forms.gcloud import training_command
from distrain_nb.places.sagemaker.forms.estimator import estimator_arguments
from distrain_nb.places.vertex.forms.gcloud import custom_job_command
from distrain_nb.places.vertex.forms.specs import worker_pool_specs

K80S = Layout.of(
    "ai-platform",
    primary="n1-highcpu-16+4*K80",
    workers="9*n1-highcpu-16+4*K80",
    servers="3*n1-highmem-8",
)
V100S = Layout.of(
    "vertex",
    primary="n1-highmem-96+8*V100",
    workers="4*n1-highmem-96+8*V100",
    reducers="16*n1-highcpu-16",
)


def test_the_reduction_server_command_goes_in_and_comes_out_as_it_was() -> None:
    assert read_any(documents.VERTEX_COMMAND).layout == V100S
    assert custom_job_command(V100S) + "\n" == documents.VERTEX_COMMAND


def test_the_json_layouts_keep_positions_and_empty_pools() -> None:
    first = read_any(documents.VERTEX_PRIMARY).layout
    assert first == Layout("vertex", primary=Pool())
    second = read_any(documents.VERTEX_SERVERS).layout
    assert second == Layout("vertex", primary=Pool(), servers=Pool())
    specs = worker_pool_specs(second)
    assert [spec.get("replicaCount") for spec in specs] == [1, None, 1]
    assert specs[1] == {}
    assert {f.code for f in check(second)} == {"machine-missing"}


@pytest.mark.parametrize("text", [documents.CONFIG, documents.CONFIG_LEGACY])
def test_config_yaml_goes_in_and_comes_out_equal(text: str) -> None:
    layout = read_any(text).layout
    assert yaml.safe_load(exports(layout)["ai-platform-yaml"]) == yaml.safe_load(text)
    assert list(yaml.safe_load(exports(layout)["ai-platform-yaml"])["trainingInput"]) == list(
        yaml.safe_load(text)["trainingInput"]
    )
    assert [(f.code, len(f.places)) for f in check(layout)] == [("accelerator-ending", 2)]


def test_both_config_files_ask_for_the_same_accelerators() -> None:
    assert read_any(documents.CONFIG).layout == K80S
    legacy = read_any(documents.CONFIG_LEGACY).layout
    assert legacy.workers == Pool(9, "complex_model_m_gpu")


def test_the_submit_command_goes_in_and_comes_out_as_it_was() -> None:
    found = read_any(documents.SUBMIT).layout
    assert found == Layout.of(
        "ai-platform", primary=K80S.primary, workers=K80S.workers, servers=K80S.servers,
        region="us-central1",
    )  # fmt: skip
    assert training_command(found) == documents.SUBMIT.partition(" \\\n        -- ")[0]


def test_the_submit_command_with_a_file_reads_the_region() -> None:
    found = read_any(documents.SUBMIT_WITH_CONFIG)
    assert found.layout.region == "us-central1"
    assert found.left_out[:3] == ("--config config.yaml", "--user_arg_1", "value_1")
    both = f"cat > config.yaml <<'EOF'\n{documents.CONFIG}EOF\n{documents.SUBMIT_WITH_CONFIG}"
    assert read_any(both).layout == read_any(documents.SUBMIT).layout


def test_flags_win_over_the_file() -> None:
    command = documents.SUBMIT_WITH_CONFIG.replace("--config", "--worker-count 2 \\\n --config")
    both = f"cat > config.yaml <<'EOF'\n{documents.CONFIG}EOF\n{command}"
    assert read_any(both).layout.replicas(Role.WORKERS) == 2


def test_the_estimators_go_in_and_come_out_in_the_names_of_version_2() -> None:
    servers = read_any(documents.ESTIMATOR_SERVERS).layout
    assert servers == Layout.of(
        "sagemaker", workers="2*ml.p3.2xlarge", framework="tensorflow-1.13",
        launcher="parameter-server",
    )  # fmt: skip
    assert estimator_arguments(servers)["distribution"] == {"parameter_server": {"enabled": True}}
    horovod = read_any(documents.ESTIMATOR_HOROVOD).layout
    assert horovod.launcher == "mpi" and horovod.ranks_per_replica == 1
    assert estimator_arguments(horovod)["distribution"] == {
        "mpi": {
            "enabled": True,
            "processes_per_host": 1,
            "custom_mpi_options": "-verbose --NCCL_DEBUG=INFO "
            "-x OMPI_MCA_btl_vader_single_copy_mechanism=none",
        }
    }
    assert check(servers) == check(horovod) == ()


GROUPS = """
from sagemaker.instance_group import InstanceGroup
group = InstanceGroup("gpus", "ml.p3.2xlarge", 2)
PyTorch(entry_point="train.py", framework_version="2.2.0", volume_size=50, instance_groups={})
"""


def test_instance_groups_are_a_primary_and_workers() -> None:
    both = GROUPS.format('[InstanceGroup("cpu", "ml.c5.xlarge", instance_count=1), group]')
    assert read_any(both).layout == Layout.of(
        "sagemaker", primary="ml.c5.xlarge,disk=50", workers="2*ml.p3.2xlarge,disk=50",
        framework="pytorch-2.2.0",
    )  # fmt: skip
    assert read_any(GROUPS.format("[group]")).layout.workers == Pool.parse(
        "2*ml.p3.2xlarge,disk=50"
    )
    with pytest.raises(OptionError, match="the first with 2 instances"):
        read_any(GROUPS.format("[group, group]"))
    with pytest.raises(OptionError, match="list of InstanceGroup"):
        read_any(GROUPS.format('["gpus"]'))


@pytest.mark.parametrize("form", all_exports(), ids=lambda form: form.name)
@examples
@given(data=st.data())
def test_what_an_export_says_is_read_back_and_said_again(form: Export, data: st.DataObject) -> None:
    text = form.text(
        data.draw(
            whole_layouts(tuple(place for place in (*PLACES, "slurm") if form in exports_of(place)))
        )
    )
    found = read_any(text)
    assert found.left_out == ()
    assert form.text(found.layout) == text


@examples
@given(whole_layouts(("vertex", "ai-platform")))
def test_pools_come_back_whole(layout: Layout) -> None:
    for form, text in exports(layout).items():
        if form in ("successor", "trainjob"):
            continue  # another layout, and one whose machines are all the same
        found = read_any(text).layout
        for role, pool in layout.pools():
            if role is Role.REDUCERS and form.startswith("ai-platform"):
                continue
            again = found.pool(role)
            assert again is not None
            assert (again.replicas, again.machine, again.accelerator, again.accelerator_count) == (
                pool.replicas, pool.machine, pool.accelerator, pool.accelerator_count,
            )  # fmt: skip


@examples
@given(layouts())
def test_no_export_raises_and_reading_it_raises_only_a_refusal(layout: Layout) -> None:
    for text in exports(layout).values():
        with contextlib.suppress(OptionError):
            read_any(text)


@examples
@given(layouts(), st.data())
def test_a_piece_of_a_text_raises_only_a_refusal(layout: Layout, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(list(exports(layout).values())))
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    for piece in (text[start:end], text[:start] + text[end:], text.replace(":", ": [", 1)):
        with contextlib.suppress(OptionError):
            read_any(piece)


@examples
@given(st.text())
def test_any_text_raises_only_a_refusal(text: str) -> None:
    for piece in (text, "{" + text, "gcloud ai custom-jobs create " + text, "--on " + text,
                  "instance_type=" + text, "on: " + text, "trainingInput: " + text):  # fmt: skip
        with contextlib.suppress(OptionError):
            read_any(piece)


def test_what_has_no_place_is_told() -> None:
    spec = {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "containerSpec": {"imageUri": "gcr.io/p/i", "env": []},
            }
        ],
        "serviceAccount": "me",
    }
    found = read_any(json.dumps(spec))
    assert set(found.left_out) == {"serviceAccount", "workerPoolSpecs[0].containerSpec.env"}
    assert {finding.code for finding in left_out(found)} == {"import-left-out"}
    assert found.layout == Layout.of("vertex", primary="n1-standard-4", image="gcr.io/p/i")


def test_a_comment_about_gcloud_makes_no_command() -> None:
    text = "# for: gcloud ai-platform jobs submit training\n" + documents.CONFIG
    assert read_any(text).layout == K80S


@pytest.mark.parametrize("sign", ["", "!", "$ "])
def test_a_command_may_stand_behind_a_sign(sign: str) -> None:
    assert read_any(sign + documents.VERTEX_COMMAND).layout == V100S


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "not a layout in a known form"),
        ("{", "not JSON"),
        ('{"workerPoolSpecs": 4}', "list of up to 4 pools"),
        ('{"workerPoolSpecs": [{"replicaCount": "many"}]}', r"workerPoolSpecs\[0\].replicaCount"),
        ("gcloud compute instances list", "only `gcloud ai custom-jobs create`"),
        ("f(instance_type=", "not Python"),
        ("trainingInput: 4", "invalid trainingInput '4': expected a mapping"),
    ],
)
def test_what_can_not_be_read_is_said(text: str, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        read_any(text)


def test_the_nearest_image_follows_the_region() -> None:
    layout = V100S.edited({"region": "asia-northeast1"})
    assert worker_pool_specs(layout)[2]["containerSpec"]["imageUri"].startswith("asia-docker")
    assert read_any(custom_job_command(layout)).layout == layout


@pytest.mark.parametrize(
    ("layout", "line"),
    [
        (Layout("ai-platform", tier="BASIC_GPU"), "--on vertex --primary n1-standard-8+1*T4"),
        (
            Layout.of("ai-platform", primary="complex_model_m_gpu", servers="3*large_model"),
            "--on vertex --primary n1-standard-16+4*T4 --servers 3*n1-highmem-8",
        ),
        (Layout.of("ai-platform", primary="n1-standard-4"), "--on vertex --primary n1-standard-4"),
    ],
)
def test_a_layout_of_ai_platform_ends_in_a_line_that_runs(layout: Layout, line: str) -> None:
    found = exports(layout)
    assert "options" not in found
    assert found["successor"].startswith(f"%%distrain {line}")
    again = read_any(found["successor"]).layout
    assert again.on == "vertex"
    assert not [f for f in check(again) if f.severity is Severity.ERROR]
