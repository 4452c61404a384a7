"""What a program's imports and calls tell the rules, and what is said of other places' options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from distrain_nb.api import check, prepare
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import read_any
from distrain_nb.layout.rules import check as check_layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REDUCED = {
    "on": "vertex",
    "primary": "n1-highmem-96+8*V100",
    "workers": "n1-highmem-96+8*V100",
    "reducers": "auto",
    "region": "us-central1",
}


@pytest.mark.parametrize(
    ("code", "warned"),
    [
        ("import tensorflow", True),
        ("import keras", True),
        ("import tf_keras", True),
        ("import tensorflow as tf, torch", True),
        ("import torch", False),
        ("import lightning", False),
    ],
)
def test_tensorflow_that_is_imported_has_one_evaluator(code: str, warned: bool) -> None:
    machine = "n1-standard-4"
    found = check(code, on="vertex", primary=machine, evaluators=f"2*{machine}")
    assert ("evaluators-many" in [each.code for each in found]) == warned


JOINS = "import torch.distributed as dist\ndef setup"
JOINED = "dist.init_process_group(backend)"


@pytest.mark.parametrize(
    ("code", "backend"),
    [
        ("import torch.distributed as dist\ndist.init_process_group('gloo')", "gloo"),
        ("import torch.distributed as dist\ndist.init_process_group(backend='mpi')", "mpi"),
        ("import tensorflow as tf\nway = tf.distribute.experimental.CollectiveCommunication.RING",
         "RING"),
        ("import torch.distributed as dist\ndist.init_process_group('nccl')", ""),
        ("from torch.distributed import *\nway = 'gloo'\ninit_process_group(way)", "gloo"),
        ("import torch.distributed as dist\ndist.init_process_group(dist.Backend.GLOO)", "gloo"),
        ("import torch.distributed as dist\ndist.init_process_group(dist.Backend.NCCL)", ""),
        (f"{JOINS}(rank, backend='gloo'):\n    {JOINED}\nsetup(0)", "gloo"),
        (f"{JOINS}(rank, backend='gloo'):\n    {JOINED}\nsetup(0, 'nccl')", ""),
        (f"{JOINS}(rank, backend='nccl'):\n    {JOINED}\nsetup(0, backend='gloo')", "gloo"),
        (f"{JOINS}(*, backend='mpi'):\n    {JOINED}\nsetup()", "mpi"),
        (f"{JOINS}(backend):\n    {JOINED}\nfor each in ways:\n    setup(each)", ""),
        (f"{JOINS}(backend='gloo'):\n    {JOINED}", ""),
        (f"{JOINS}(backend='agg'):\n    ...\nsetup()\nbackend = 'gloo'\n{JOINED}", "gloo"),
        ("from transformers import TrainingArguments\nTrainingArguments('out', ddp_backend='gloo')",
         "gloo"),
        ("from lightning.pytorch.strategies import DDPStrategy\n"
         "DDPStrategy(process_group_backend='gloo')", "gloo"),
        ("import deepspeed\ndeepspeed.init_distributed('gloo')", "gloo"),
        ("import torch\nway = 'nccl' if torch.cuda.is_available() else 'gloo'\n"
         "torch.distributed.init_process_group(way)", ""),
        ("import torch\nif torch.cuda.is_available():\n    way, device = 'nccl', 'cuda'\n"
         "else:\n    way = 'gloo'\ntorch.distributed.init_process_group(way)", ""),
        ("import torch\nif torch.cuda.is_available():\n"
         "    torch.distributed.init_process_group('nccl')\n"
         "else:\n    torch.distributed.init_process_group('gloo')", ""),
        ("import torch.distributed as dist\ndist.init_process_group('cpu:gloo,cuda:nccl')", ""),
        ("import torch.distributed as dist\ndist.init_process_group()", ""),
    ],
)  # fmt: skip
def test_a_reduction_server_serves_nccl_alone(code: str, backend: str) -> None:
    found = check(code, **REDUCED)
    told = [each.message for each in found if each.code == "vertex.reduction-backend"]
    assert [f"gradients by {backend}:" in message for message in told] == [True] * bool(backend)


def test_ai_platform_takes_no_jobs_and_both_ways_out_are_said() -> None:
    with pytest.raises(OptionError) as wrong:
        check("print()", on="ai-platform", primary="complex_model_m_gpu", region="us-central1")
    said = str(wrong.value)
    line = "--on vertex --primary n1-standard-16+4*T4 --region us-central1"
    assert f"write `{line}`" in said
    command = said[said.index("gcloud ai-platform jobs submit training") :]
    assert read_any(command).layout == Layout.of(
        "ai-platform", primary="complex_model_m_gpu", region="us-central1"
    )


def test_a_cell_for_ai_platform_is_repaired_into_one_that_runs() -> None:
    cell = "%%distrain --on ai-platform --tier BASIC_GPU --dry-run\nprint()"
    with pytest.raises(OptionError) as wrong:
        check("print()", on="ai-platform", tier="BASIC_GPU")
    (found,) = wrong.value.findings
    repaired = found.fixes[0].apply(cell)
    head = "%%distrain --on vertex --dry-run --primary n1-standard-8+1*T4"
    assert repaired == f"{head}\nprint()"


def test_spot_machines_on_sagemaker_always_have_a_place_for_checkpoints() -> None:
    layout = Layout.of("sagemaker", workers="ml.m5.large", spot=True)
    assert check_layout(layout) == ()


def request_in(printed: str) -> Any:
    """The request of a dry run: all of it but comments, or what its here-document has."""
    body = printed.partition("<<END\n")[2].rpartition("\nEND")[0]
    return yaml.safe_load(re.sub(r"\\([\\`$])", r"\1", body) or printed)


def empty(value: Any, path: str = "") -> Iterator[str]:
    """The paths of empty texts, of those in JSON too, which hyperparameters are."""
    if isinstance(value, dict):
        yield from (each for key, inner in value.items() for each in empty(inner, f"{path}.{key}"))
    elif isinstance(value, list):
        yield from (each for inner in value for each in empty(inner, path))
    elif value in ("", '""'):
        yield path


@pytest.fixture
def nothing_set(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


@pytest.mark.usefixtures("nothing_set")
def test_a_dry_run_names_the_settings_that_nobody_has_made() -> None:
    vertex = str(prepare("import json", on="vertex", primary="n1-standard-4").plan)
    assert "LOCATION-docker.pkg.dev/PROJECT/distrain/run:" in vertex
    sagemaker = str(prepare("import json", on="sagemaker", workers="ml.m5.large").plan)
    assert '"TrainingImage": "REPOSITORY:${RUN}"' in sagemaker


SCRIPT: dict[str, Any] = {"on": "sagemaker", "python_package": True}


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("import json", {"on": "vertex", "primary": "n1-standard-4"}),
        ("import torch", {"on": "vertex", "primary": "n1-standard-4", "python_package": True}),
        ("import torch", {**REDUCED, "region": None, "pipeline": True}),
        ("import json", {"on": "sagemaker", "workers": "ml.m5.large"}),
        ("import torch", {**SCRIPT, "workers": "2*ml.p3.2xlarge", "framework": "pytorch-2.4"}),
        ("import torch", {**SCRIPT, "workers": "2*ml.p4d.24xlarge",
                          "distribution": "smdistributed.dataparallel"}),
        ("import torch", {**SCRIPT, "workers": "2"}),
        ("import tensorflow", {**SCRIPT, "workers": "2*ml.p3.2xlarge"}),
        ("import json", {**SCRIPT, "workers": "2*ml.m5.large"}),
        ("import json", {**SCRIPT, "workers": "ml.m5.large", "region": "us-east-1"}),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("nothing_set")
def test_a_dry_run_has_a_word_for_whatever_nobody_has_set(
    code: str, options: dict[str, Any]
) -> None:
    found = empty(request_in(str(prepare(code, **options).plan)))
    # The containers get the options for mpirun in any case, as from the SDK.
    assert [path for path in found if not path.endswith("_custom_mpi_options")] == []


@pytest.mark.usefixtures("nothing_set")
def test_a_container_is_known_before_its_region_is() -> None:
    found = prepare("import torch", **SCRIPT, workers="2*ml.p3.2xlarge", framework="pytorch-2.5")
    assert '"TrainingImage": "REGISTRY/pytorch-training:2.5-gpu-' in str(found.plan)
    assert "sagemaker.no-container" not in [each.code for each in found.findings]
