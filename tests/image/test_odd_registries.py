"""Manifests and configurations that are not what they should be: a sentence, with the way out."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.errors import ImageError
from distrain_nb.image.base import Base, read_base
from distrain_nb.image.registry.client import Registry, RegistryBlob
from distrain_nb.image.registry.image_config import ContainerSettings, ImageConfig
from distrain_nb.image.registry.manifest import OCI, Manifest, pick_platform
from distrain_nb.image.registry.reference import Reference
from tests.fuzzing import flipped, rounds

from .services.odd import Said, odd_registry

pytestmark = pytest.mark.brief

if TYPE_CHECKING:
    from collections.abc import Callable

DIGEST = "sha256:" + "a" * 64
MANIFEST: dict[str, Any] = {
    "schemaVersion": 2,
    "mediaType": OCI.manifest,
    "config": {"mediaType": "c", "digest": DIGEST, "size": 3},
    "layers": [{"mediaType": OCI.layer, "digest": DIGEST, "size": 5, "urls": ["https://x"]}],
    "annotations": {"a": "b"},
}
INDEX: dict[str, Any] = {
    "schemaVersion": 2,
    "mediaType": OCI.index,
    "manifests": [
        {"digest": DIGEST, "size": 1,
         "platform": {"os": "linux", "architecture": "amd64", "variant": "v1"}},
    ],
}  # fmt: skip
CONFIG: dict[str, Any] = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2024-01-01T00:00:00Z",
    "config": {"Env": ["A=1"], "Cmd": ["sh"], "Entrypoint": ["run"], "User": "me",
               "Labels": {"l": "1"}, "WorkingDir": "/work"},
    "rootfs": {"type": "layers", "diff_ids": [DIGEST]},
    "history": [{"created_by": "base"}],
}  # fmt: skip
ODD = (None, [], {}, "", "x", 0, -1, 1e300, True, [None], [[]], {"a": None}, "a\0b", "\ud800",
       float("nan"), float("inf"), 10**40, "sha256:../../../../etc/passwd", "9" * 5000)  # fmt: skip


def used(manifest: bytes, index: bytes, config: bytes) -> None:
    """All that is done with them, but for their layers."""
    pick_platform(index, OCI.index, "linux/amd64", "here")
    read = Manifest.read(manifest, OCI.manifest, "here")
    read.with_layers(b"{}", []).to_bytes()
    assert all(layer.size >= 0 and ".." not in layer.digest for layer in read.layers)
    base = ImageConfig.read(config, "here")
    base.with_layers({}, ContainerSettings(("run",), {"B": "2"}, {"m": "3"}, "/")).to_bytes()
    assert isinstance(base.platform, str)
    assert all(isinstance(text, str) for text in (*base.entrypoint, *base.environment.values()))


def places(value: Any) -> list[tuple[Any, ...]]:
    """The paths of everything in a document."""
    inner = value if isinstance(value, dict) else dict(enumerate(value))
    found: list[tuple[Any, ...]] = []
    for key, each in inner.items():
        below = places(each) if isinstance(each, dict | list) else []
        found += [(key,), *((key, *path) for path in below)]
    return found


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(document)
    at = made
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return made


@pytest.mark.parametrize("number", range(3), ids=["manifest", "index", "configuration"])
def test_each_part_may_be_odd_or_missing(number: int) -> None:
    documents = (MANIFEST, INDEX, CONFIG)
    refused = 0
    for path in places(documents[number]):
        for value in (*ODD, ...):
            made = list(documents)
            made[number] = changed(documents[number], path, value)
            try:
                used(*(json.dumps(each).encode() for each in made))
            except ImageError as wrong:
                refused += 1
                assert len(str(wrong)) < 500
    assert refused > 50


def test_documents_by_chance() -> None:
    seeds = [json.dumps(each).encode() for each in (MANIFEST, INDEX, CONFIG)]
    assert used(*seeds) is None
    for chance in rounds(7, 20_000):
        made = [flipped(chance, seed) if chance.random() < 0.5 else seed for seed in seeds]
        try:
            used(*made)
        except ImageError as wrong:
            assert len(str(wrong)) < 800


@pytest.mark.parametrize(
    "document", [b"[" * 100_000, b'{"config":' * 50_000, b"9" * 10_000, b"NaN", b"\xff\xfe{}"]
)
def test_what_is_no_document_is_told(document: bytes) -> None:
    with pytest.raises(ImageError, match="not a container image"):
        Manifest.read(document, OCI.manifest, "here")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"config": None}, "config is None"),
        ({"layers": [{"mediaType": "l", "size": 1}]}, "digest is None"),
        ({"layers": [{"mediaType": "l", "size": -1, "digest": DIGEST}]}, "size is -1"),
        ({"layers": [{"mediaType": "l", "size": 1, "digest": "sha256:../x"}]}, "64 digits"),
        ({"layers": {"a": 1}}, "not a list"),
    ],
)
def test_the_sentence_names_what_is_wrong(changes: dict[str, Any], why: str) -> None:
    data = json.dumps({**MANIFEST, **changes}).encode()
    with pytest.raises(ImageError, match=rf"cannot read .*here: its .*{why}.*push it again"):
        Manifest.read(data, OCI.manifest, "here")


def read(answers: Callable[[str], Said]) -> tuple[Base | None, str, list[int]]:
    """What comes of reading an image from such a registry: the base, or what is said."""
    with odd_registry(answers) as (host, sent):
        registry = Registry(host, [])
        try:
            return read_base(registry, Reference.parse(f"{host}/a/b:1"), "linux/amd64"), "", sent
        except ImageError as wrong:
            return None, str(wrong), sent
        finally:
            registry.close()


def endless() -> Any:
    return itertools.repeat(b"x" * (1 << 16), 10_000)  # 655 MB


TOO_MUCH, LOGIN = "bytes, too much for", "requires a login"


@pytest.mark.parametrize(
    ("status", "why"),
    [(200, TOO_MUCH), (401, LOGIN), (403, TOO_MUCH), (404, TOO_MUCH), (302, TOO_MUCH)],
)
def test_a_manifest_without_end_is_not_held(status: int, why: str) -> None:
    around = {"Location": "/v2/a/b/manifests/2"}

    def answers(path: str) -> Said:
        odd = Said(endless(), status, around)
        return odd if path.endswith("/1") else Said([b"{}"], 404)

    base, said, sent = read(answers)
    assert base is None
    assert why in said
    assert max(sent) < 64 << 20


def test_a_packed_manifest_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * (64 << 20))
    base, said, _ = read(lambda _: Said([bomb], 200, {"Content-Encoding": "gzip"}))
    assert base is None
    assert "compressed its answer" in said


def test_a_configuration_without_end_is_not_held() -> None:
    data = json.dumps(MANIFEST).encode()
    base, said, sent = read(lambda path: Said([data] if "manifests" in path else endless()))
    assert base is None
    assert "bytes, too much for" in said
    assert max(sent) < 64 << 20


def test_a_registry_that_sends_in_circles_is_told() -> None:
    base, said, _ = read(lambda path: Said((), 302, {"Location": path}))
    assert base is None
    assert "redirects in a loop" in said


@pytest.mark.parametrize("place", ["http://[", "nowhere://x/", "http://host:99999999/", "\x01"])
def test_a_registry_that_sends_nowhere_is_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distrain_nb.image.registry.retry._ATTEMPTS", 1)
    base, said, _ = read(lambda _: Said((), 302, {"Location": place}))
    assert base is None
    assert said.startswith("Reading 127.0.0.1")


def test_a_blob_has_the_size_that_its_manifest_says() -> None:
    with odd_registry(lambda _: Said(endless())) as (host, sent):
        registry = Registry(host, [])
        blob = RegistryBlob(registry, "a/b", DIGEST, 1_000)
        with pytest.raises(ImageError, match="more than its 1,000 bytes"):
            list(blob.chunks())
        registry.close()
    assert max(sent) < 64 << 20


@pytest.mark.parametrize("after", ["²", "1e999", "-1", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_an_odd_pause_is_none(after: str) -> None:
    statuses = itertools.chain([503], itertools.repeat(404))
    odd = {"Retry-After": after}
    assert "404" in read(lambda _: Said([b"{}"], next(statuses), odd))[1]
