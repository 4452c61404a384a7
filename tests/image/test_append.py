"""The append builder against a real registry, judged by skopeo and by the registry."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from distrain_nb.errors import CheckFailed, ImageError
from distrain_nb.image.builders.append import build
from distrain_nb.image.image import Image
from distrain_nb.image.recipe import Recipe

from .programs import SimpleProgram
from .services.processes import run

pytestmark = pytest.mark.brief

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.worker.files.status import Progress

    from .services.bases import BaseImage


def inspect(image: Image, *options: str) -> Any:
    return json.loads(run("skopeo", "inspect", "--tls-verify=false", *options, _at(image)))


def _at(image: Image) -> str:
    return f"docker://{image.uri}"


def names_in(image: Image, purpose: str) -> set[str]:
    layer = next(x for x in image.layers if x.purpose == purpose)
    url = f"http://{image.reference.registry}/v2/{image.reference.repository}/blobs/{layer.digest}"
    with tarfile.open(fileobj=io.BytesIO(httpx.get(url).content)) as tar:
        return set(tar.getnames())


def ways(image: Image) -> dict[str, str]:
    return {layer.purpose: layer.how for layer in image.layers}


@pytest.mark.parametrize("family", ["docker", "oci"])
def test_an_image_of_either_family(open_registry: str, small: BaseImage, family: str) -> None:
    base = f"{open_registry}/families/{family}:1"
    small.with_(family=family).push(base)
    target = f"{open_registry}/built/{family}:1"
    image = build(SimpleProgram(), Recipe(base, target, labels={"team": "blue"}))
    raw = inspect(image, "--raw")
    assert family in raw["mediaType"]
    assert all(family in layer["mediaType"] for layer in raw["layers"])
    config = inspect(image, "--config")
    assert config["config"]["Entrypoint"] == ["python3", "-m", "distrain_nb.worker"]
    assert config["config"]["Labels"]["team"] == "blue"
    assert len(config["rootfs"]["diff_ids"]) == len(raw["layers"]) == len(config["history"]) == 3
    assert inspect(image)["Digest"] == image.reference.digest
    assert "opt/distrain/program/main.py" in names_in(image, "program")
    assert "opt/distrain/worker/distrain_nb/worker/__init__.py" in names_in(image, "worker")


@pytest.mark.parametrize("kind", ["oci", "dir"])
def test_skopeo_copies_it_and_finds_every_digest_right(
    base: str, open_registry: str, tmp_path: Path, kind: str
) -> None:
    image = build(SimpleProgram(), Recipe(base, f"{open_registry}/copied/{kind}:1"))
    run("skopeo", "copy", "--src-tls-verify=false", _at(image), f"{kind}:{tmp_path / 'copy'}")


@pytest.mark.stands_for("a registry and an image")
def test_the_base_is_mounted_and_unchanged_layers_are_not_sent_again(
    base: str, open_registry: str
) -> None:
    recipe = Recipe(base, f"{open_registry}/team/again:1")
    first = build(SimpleProgram("print(1)"), recipe)
    assert ways(first) == {"base": "mounted", "worker": "sent", "program": "sent"}
    second = build(SimpleProgram("print(2)"), recipe)
    assert ways(second) == {"base": "already there", "worker": "already there", "program": "sent"}
    again = build(SimpleProgram("print(1)"), recipe)
    assert set(ways(again).values()) == {"already there"}
    assert again.reference == first.reference != second.reference
    program = second.layers[-1].size
    assert program < second.sent < program + 4000


def test_in_the_repository_of_the_base_nothing_moves(base: str, open_registry: str) -> None:
    image = build(SimpleProgram(), Recipe(base, f"{open_registry}/bases/python:job"))
    assert ways(image)["base"] == "left in place"
    assert inspect(image)["Digest"] == image.reference.digest


def test_a_base_of_another_registry_is_streamed_across(
    base: str, open_registry: str, other_registry: str
) -> None:
    events: list[Progress] = []
    target = f"{other_registry}/team/job:1"
    image = build(SimpleProgram(), Recipe(base, target), events.append)
    assert ways(image)["base"] == "copied"
    assert image.sent > 20_000_000
    sending = [event for event in events if event.phase == "sending"]
    assert sending[-1].done == sending[-1].total == image.sent
    assert len({event.done for event in sending}) > 20
    run("skopeo", "inspect", "--tls-verify=false", _at(image))
    again = build(SimpleProgram("print(2)"), Recipe(base, target))
    assert ways(again)["base"] == "already there"


def test_a_base_that_is_an_image_index(open_registry: str, small: BaseImage) -> None:
    entries = []
    for processor in ("arm64", "amd64"):
        digest = small.with_(family="oci", architecture=processor).push(
            f"{open_registry}/multi/base:{processor}"
        )
        entries.append(_entry(open_registry, digest, processor))
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": entries,
    }
    url = f"http://{open_registry}/v2/multi/base/manifests/all"
    headers = {"Content-Type": index["mediaType"]}
    assert httpx.put(url, content=json.dumps(index), headers=headers).status_code == 201
    recipe = Recipe(f"{open_registry}/multi/base:all", f"{open_registry}/multi/job:1")
    for platform in ("linux/amd64", "linux/arm64"):
        image = build(SimpleProgram(), Recipe(recipe.base, recipe.target, platform=platform))
        assert image.platform == platform
        assert f"linux/{inspect(image, '--config')['architecture']}" == platform
    with pytest.raises(ImageError, match="no image for linux/s390x"):
        build(SimpleProgram(), Recipe(recipe.base, recipe.target, platform="linux/s390x"))


def _entry(host: str, digest: str, processor: str) -> dict[str, Any]:
    kind = "application/vnd.oci.image.manifest.v1+json"
    url = f"http://{host}/v2/multi/base/manifests/{digest}"
    size = len(httpx.get(url, headers={"Accept": kind}).content)
    platform = {"os": "linux", "architecture": processor}
    return {"mediaType": kind, "digest": digest, "size": size, "platform": platform}


def test_an_image_of_ours_can_be_a_base(base: str, open_registry: str) -> None:
    first = build(SimpleProgram(), Recipe(base, f"{open_registry}/stacked/one:1"))
    second = build(SimpleProgram("print(2)"), Recipe(first.uri, f"{open_registry}/stacked/two:1"))
    assert [x.purpose for x in second.layers] == ["base"] * 3 + ["worker", "program"]
    paths = inspect(second, "--config")["config"]["Env"]
    assert "PYTHONPATH=/opt/distrain/worker" in paths


def test_the_environment_of_the_base_is_kept(open_registry: str, small: BaseImage) -> None:
    base = f"{open_registry}/bases/paths:1"
    small.with_(env=("PATH=/bin", "PYTHONPATH=/base/lib", "KEEP=1")).push(base)
    recipe = Recipe(base, f"{open_registry}/team/paths:1", environment={"MORE": "2"})
    variables = inspect(build(SimpleProgram(), recipe), "--config")["config"]["Env"]
    assert set(variables) >= {
        "PYTHONPATH=/opt/distrain/worker:/base/lib",
        "KEEP=1",
        "MORE=2",
        "PATH=/bin",
    }


def test_what_is_shown(base: str, open_registry: str) -> None:
    image = build(SimpleProgram(), Recipe(base, f"{open_registry}/team/shown:1"))
    for shown in (str(image), image._repr_html_()):
        for word in (
            "mounted",
            "python3 -m distrain_nb.worker",
            f"docker run --rm {image.uri}",
            "DISTRAIN_PROGRAM=/opt/distrain/program",
            str(image.reference.digest),
        ):
            assert word in shown
        assert all(layer.digest[7:19] in shown for layer in image.layers)


def test_secrets_stay_out(base: str, open_registry: str) -> None:
    target = f"{open_registry}/team/secret:1"
    program = SimpleProgram(files={".env": b"A=1", "data/key.pem": PRIVATE_KEY})
    with pytest.raises(CheckFailed, match=r"--allow-secret \.env") as caught:
        build(program, Recipe(base, target))
    assert [finding.where for finding in caught.value.findings] == [".env", "data/key.pem, line 1"]
    assert httpx.get(f"http://{open_registry}/v2/team/secret/tags/list").status_code == 404
    image = build(program, Recipe(base, target, allowed_secrets=(".env", "data/key.pem")))
    assert "opt/distrain/program/.env" in names_in(image, "program")


PRIVATE_KEY = b"-----BEGIN RSA PRIVATE " + b"KEY-----\nMIIEow\n"


def test_a_base_that_is_not_there(open_registry: str) -> None:
    with pytest.raises(ImageError, match=rf"{open_registry}/no/such:1.*404"):
        build(SimpleProgram(), Recipe(f"{open_registry}/no/such:1", f"{open_registry}/a/b:1"))


def test_a_target_with_a_digest_is_refused(base: str, open_registry: str) -> None:
    with pytest.raises(ImageError, match="expected no digest"):
        build(SimpleProgram(), Recipe(base, f"{open_registry}/a/b@sha256:{'a' * 64}"))


def test_commands_need_the_docker_builder(base: str, open_registry: str) -> None:
    with pytest.raises(ImageError, match="--builder docker"):
        build(SimpleProgram(), Recipe(base, f"{open_registry}/a/b:1", run=("apt-get update",)))
