"""Manifests, indexes and configurations keep what they don't know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.errors import ImageError
from distrain_nb.image.layers import write_layer
from distrain_nb.image.registry.image_config import ContainerSettings, ImageConfig
from distrain_nb.image.registry.manifest import DOCKER, OCI, Manifest, digest_of, pick_platform

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.brief

DIGEST = "sha256:" + "a" * 64


def manifest(**changes: Any) -> bytes:
    document = {
        "schemaVersion": 2,
        "config": {"mediaType": "c", "digest": DIGEST, "size": 3},
        "layers": [
            {"mediaType": "l", "digest": DIGEST, "size": 5, "annotations": {"kept": "yes"}},
            {"mediaType": "l", "digest": DIGEST, "size": 6, "urls": ["https://elsewhere"]},
        ],
        "annotations": {"also": "kept"},
        **changes,
    }
    return json.dumps(document).encode()


CONFIG = {
    "architecture": "arm64",
    "os": "linux",
    "created": "2024-01-01T00:00:00Z",
    "config": {"Env": ["A=1", "B=x=y"], "Cmd": ["sh"], "User": "me", "Labels": {"l": "1"}},
    "rootfs": {"type": "layers", "diff_ids": [DIGEST]},
    "history": [{"created_by": "base"}],
    "os.version": "kept",
}


@pytest.mark.parametrize("family", [OCI, DOCKER])
def test_a_new_layer_keeps_the_media_types_of_the_base(tmp_path: Path, family: Any) -> None:
    base = Manifest.read(manifest(), family.manifest, "base")
    layer = write_layer(tmp_path / "layer", {"/a": b"a"})
    made = json.loads(base.with_layers(b"config", [layer]).to_bytes())
    assert made["mediaType"] == family.manifest
    assert made["layers"][:2] == json.loads(manifest())["layers"]
    assert made["layers"][2] == {
        "mediaType": family.layer,
        "size": layer.size,
        "digest": layer.digest,
    }
    assert made["config"] == {"mediaType": "c", "size": 6, "digest": digest_of(b"config")}
    assert made["annotations"] == {"also": "kept"}
    assert [x.foreign for x in base.layers] == [False, True]


def test_the_documents_own_type_goes_before_the_header() -> None:
    data = manifest(mediaType=OCI.manifest)
    assert Manifest.read(data, "application/json; charset=utf-8", "base").family is OCI


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<html>", "JSON"),
        (b"[]", "JSON"),
        (manifest(), "application/octet-stream"),
        (b'{"schemaVersion": 1, "fsLayers": []}', "schema-1"),
        (json.dumps({"mediaType": OCI.manifest}).encode(), OCI.manifest),
    ],
)
def test_what_is_no_image_is_refused(data: bytes, kind: str) -> None:
    with pytest.raises(ImageError, match=r"(?i)container image"):
        Manifest.read(data, kind, "somewhere")


def index(*platforms: str) -> bytes:
    entries = []
    for number, platform in enumerate(platforms):
        system, processor, variant = (*platform.split("/"), "")[:3]
        said = {"os": system, "architecture": processor} | ({"variant": variant} if variant else {})
        entries.append({"digest": f"sha256:{number:064}", "platform": said})
    return json.dumps({"schemaVersion": 2, "manifests": entries}).encode()


def test_an_index_gives_the_image_of_the_platform() -> None:
    data = index("linux/arm64/v8", "linux/amd64", "unknown/unknown")
    assert pick_platform(data, OCI.index, "linux/amd64", "x") == f"sha256:{1:064}"
    assert pick_platform(data, DOCKER.index, "linux/arm64", "x") == f"sha256:{0:064}"
    assert pick_platform(manifest(), OCI.manifest, "linux/amd64", "x") is None


def test_an_index_without_the_platform_names_those_it_has() -> None:
    data = index("linux/arm64/v8", "linux/s390x", "unknown/unknown")
    message = r"x has no image for linux/amd64. It has: linux/arm64/v8, linux/s390x\."
    with pytest.raises(ImageError, match=message):
        pick_platform(data, OCI.index, "linux/amd64", "x")


def test_a_configuration_is_extended(tmp_path: Path) -> None:
    base = ImageConfig.read(json.dumps(CONFIG).encode(), "base")
    assert (base.platform, base.environment) == ("linux/arm64", {"A": "1", "B": "x=y"})
    layer = write_layer(tmp_path / "layer", {"/a": b"a"})
    settings = ContainerSettings(("run",), {"A": "2", "C": "3"}, {"m": "2"}, "/work")
    made = json.loads(base.with_layers({"program": layer}, settings).to_bytes())
    assert made["rootfs"]["diff_ids"] == [DIGEST, layer.diff_id]
    assert len(made["history"]) == 2
    assert "program" in made["history"][1]["created_by"]
    assert made["config"] == {
        "Env": ["A=2", "B=x=y", "C=3"],
        "User": "me",
        "Labels": {"l": "1", "m": "2"},
        "Entrypoint": ["run"],
        "WorkingDir": "/work",
    }
    assert (made["os.version"], made["created"]) == ("kept", CONFIG["created"])
    assert json.loads(json.dumps(CONFIG)) == base.document


def test_a_history_that_is_missing_or_null_is_no_obstacle(tmp_path: Path) -> None:
    layer = write_layer(tmp_path / "layer", {"/a": b"a"})
    settings = ContainerSettings(("run",), {}, {}, "/")
    for changes in ({"history": None}, {"config": None}, {"created": None}):
        base = ImageConfig.read(json.dumps({**CONFIG, **changes}).encode(), "base")
        made = json.loads(base.with_layers({"program": layer}, settings).to_bytes())
        assert made["config"]["Entrypoint"] == ["run"]
        assert made["created"] if "created" not in changes else True


def test_an_artifact_is_no_base() -> None:
    with pytest.raises(ImageError, match="choose another base"):
        ImageConfig.read(b'{"model": "weights"}', "somewhere")
