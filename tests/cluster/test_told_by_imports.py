"""What a program's imports and calls tell the rules, and what is said of other places' options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from distrain_nb.api import check, prepare
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.rules import check as check_layout

if TYPE_CHECKING:
    from pathlib import Path

REDUCED = {
    "on": "vertex",
    "primary": "n1-highmem-96+8*V100",
    "workers": "n1-highmem-96+8*V100",
    "reducers": "auto",
    "region": "us-central1",
}


@pytest.mark.parametrize(("code", "warned"), [("import tensorflow", True), ("import torch", False)])
def test_tensorflow_that_is_imported_has_one_evaluator(code: str, warned: bool) -> None:
    machine = "n1-standard-4"
    found = check(code, on="vertex", primary=machine, evaluators=f"2*{machine}")
    assert ("evaluators-many" in [each.code for each in found]) == warned


@pytest.mark.parametrize(
    ("code", "backend"),
    [
        ("import torch.distributed as dist\ndist.init_process_group('gloo')", "gloo"),
        ("import torch.distributed as dist\ndist.init_process_group(backend='mpi')", "mpi"),
        ("import tensorflow as tf\nway = tf.distribute.experimental.CollectiveCommunication.RING",
         "RING"),
        ("import torch.distributed as dist\ndist.init_process_group('nccl')", ""),
        ("import torch.distributed as dist\ndist.init_process_group('cpu:gloo,cuda:nccl')", ""),
        ("import torch.distributed as dist\ndist.init_process_group()", ""),
    ],
)  # fmt: skip
def test_a_reduction_server_serves_nccl_alone(code: str, backend: str) -> None:
    found = check(code, **REDUCED)
    told = [each.message for each in found if each.code == "vertex.reduction-backend"]
    assert [f"gradients by {backend}:" in message for message in told] == [True] * bool(backend)


def test_ai_platform_takes_a_command_and_no_jobs() -> None:
    with pytest.raises(OptionError, match=r"Copy the command .* or write --on vertex"):
        check("print()", on="ai-platform", primary="n1-standard-4")


def test_spot_machines_on_sagemaker_always_have_a_place_for_checkpoints() -> None:
    layout = Layout.of("sagemaker", workers="ml.m5.large", spot=True)
    assert check_layout(layout) == ()


@pytest.mark.usefixtures("home")
def test_a_dry_run_names_the_settings_that_nobody_has_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    vertex = str(prepare("import json", on="vertex", primary="n1-standard-4").plan)
    assert "LOCATION-docker.pkg.dev/PROJECT/distrain/run:" in vertex
    sagemaker = str(prepare("import json", on="sagemaker", workers="ml.m5.large").plan)
    assert '"TrainingImage": ":' not in sagemaker
