"""What a registry says of the image that a job names, and registries that say nothing."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb.api import check, prepare
from distrain_nb.findings import Severity
from distrain_nb.image.description import describe
from distrain_nb.layout.hardware import AMD64

from .services.registries import htpasswd, registry

if TYPE_CHECKING:
    from distrain_nb.findings import Finding

    from .services.bases import BaseImage

pytestmark = pytest.mark.brief

AWS = "com.amazonaws.ml.engines.sagemaker.dlc.device"
TORCH = "import torch\n"
PLACES = {
    "vertex": {"on": "vertex", "primary": "n1-standard-4+1*T4"},
    "sagemaker": {"on": "sagemaker", "workers": "ml.g5.xlarge"},
}


def about_image(image: str, place: str, **more: object) -> list[Finding]:
    options = {**PLACES[place], "image": image, **more}
    return [it for it in check(TORCH, **options) if it.code.startswith("accelerator.")]  # type: ignore[arg-type]


@pytest.mark.parametrize("place", PLACES)
def test_an_image_for_cpus_is_refused_on_gpus(
    open_registry: str, tiny: BaseImage, place: str
) -> None:
    image = f"{open_registry}/mine/training:1"
    tiny.with_(labels=((f"{AWS}.cpu", "true"),)).push(image)
    (finding,) = about_image(image, place)
    assert (finding.code, finding.severity) == ("accelerator.other-image", Severity.ERROR)
    assert f"{image} is for CPUs (by its label {AWS}.cpu)" in finding.message
    assert [fix.label for fix in finding.fixes] == ["Leave --image out"]


@pytest.mark.parametrize("place", PLACES)
def test_an_image_for_gpus_is_taken_on_gpus_and_noted_on_cpus(
    open_registry: str, tiny: BaseImage, place: str
) -> None:
    image = f"{open_registry}/mine/tools:1"
    tiny.with_(env=(*tiny.env, "NVIDIA_VISIBLE_DEVICES=all", "CUDA_VERSION=12.4.1")).push(image)
    assert not about_image(image, place)
    plain = {"primary": "n1-standard-4"} if place == "vertex" else {"workers": "ml.m5.xlarge"}
    (finding,) = about_image(image, place, **plain)
    assert (finding.code, finding.severity) == ("accelerator.needless-image", Severity.INFO)
    assert "(by its variable NVIDIA_VISIBLE_DEVICES)" in finding.message


@pytest.mark.parametrize("place", PLACES)
def test_an_image_that_can_not_be_told_is_believed(
    open_registry: str, tiny_base: str, place: str
) -> None:
    assert not about_image(tiny_base, place)
    assert not about_image(f"{open_registry}/nothing/here:1", place)


def test_the_configuration_rules_over_the_name(open_registry: str, tiny: BaseImage) -> None:
    image = f"{open_registry}/mine/cpu-tools:1"
    tiny.with_(labels=(("distrain-nb.devices", "gpu"),)).push(image)
    assert not about_image(image, "vertex")


def test_an_image_that_a_build_has_made(open_registry: str, tiny: BaseImage) -> None:
    image = f"{open_registry}/mine/built:1"
    tiny.with_(labels=(("distrain-nb.packages", "numpy==2.4.6 torch==2.13.0+cpu"),)).push(image)
    (finding,) = about_image(image, "sagemaker")
    assert "(by its package torch==2.13.0+cpu)" in finding.message


def test_a_base_is_asked_too(open_registry: str, tiny: BaseImage) -> None:
    base = f"{open_registry}/mine/base:1"
    tiny.with_(labels=((f"{AWS}.cpu", "true"),)).push(base)
    (finding,) = about_image("", "vertex", base=base)
    assert (finding.where, finding.severity) == ("base", Severity.WARNING)


def test_a_plan_asks_nobody(open_registry: str, tiny: BaseImage) -> None:
    """The answer is part of the job: the image may be another by now."""
    image = f"{open_registry}/mine/moving:1"
    tiny.with_(labels=((f"{AWS}.cpu", "true"),)).push(image)
    options = {**PLACES["vertex"], "image": image}
    prepared = prepare(TORCH, **options)  # type: ignore[arg-type]
    tiny.with_(labels=((f"{AWS}.gpu", "true"),)).push(image)
    assert prepared.backend.plan(prepared.job).findings == prepared.plan.findings
    assert not about_image(image, "vertex")


def test_a_registry_that_wants_a_login(tmp_path: Path, tiny: BaseImage) -> None:
    with registry(tmp_path / "closed", htpasswd(tmp_path / "auth")) as host:
        assert describe(f"{host}/mine:1", AMD64) is None


def test_a_registry_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        assert describe(f"{host}/mine:1", AMD64, within=0.1) is None


@pytest.mark.parametrize("image", ["127.0.0.1:1/mine:1", "not a name", "UPPER/case"])
def test_what_nobody_has(image: str) -> None:
    assert describe(image, AMD64) is None
