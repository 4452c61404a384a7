"""Base images: one of Debian's packages, and one of more than a gigabyte."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from scripts.cache import alone, cache

from .processes import run
from .registries import STORAGE

CACHE = cache("images")
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SUITE = "bookworm"
# Nothing is configured, so nobody else compiles what every container starts with.
_COMPILED = '--extract-hook=chroot "$1" python3 -m compileall -q /usr/lib/python3.11'
_PYTHON = ("python3", "libstdc++6", "libgomp1", "dash")
_BIG_LAYERS = 9
_BIG_LAYER = 120_000_000
_TINY_LAYER = 2_000_000
_TYPES = {
    "docker": (
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.container.image.v1+json",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    ),
    "oci": (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.oci.image.layer.v1.tar+gzip",
    ),
}


@dataclass(frozen=True)
class Blob:
    """A layer on this machine's disk."""

    path: Path
    digest: str
    diff_id: str


@dataclass(frozen=True)
class BaseImage:
    """An image to push: made here with other means than the ones under test."""

    layers: tuple[Blob, ...]
    family: str = "docker"
    env: tuple[str, ...] = (PATH, "PYTHON_VERSION=3.11.2")
    labels: tuple[tuple[str, str], ...] = ()
    architecture: str = "amd64"

    def push(self, name: str) -> str:
        """Push to `host/repository:tag`; gives the digest."""
        host, _, rest = name.partition("/")
        repository, _, tag = rest.rpartition(":")
        with httpx.Client(base_url=f"http://{host}", timeout=300, trust_env=False) as http:
            for layer in self.layers:
                _upload(http, repository, layer.digest, layer.path)
            config = self._config()
            _upload(http, repository, _digest(config), config)
            answer = http.put(
                f"/v2/{repository}/manifests/{tag}",
                content=self._manifest(config),
                headers={"Content-Type": _TYPES[self.family][0]},
            )
        assert answer.status_code == 201, answer.text
        return answer.headers["Docker-Content-Digest"]

    def with_(self, **changes: Any) -> BaseImage:
        return replace(self, **changes)

    def _config(self) -> bytes:
        return json.dumps(
            {
                "architecture": self.architecture,
                "os": "linux",
                "created": "2025-01-01T00:00:00Z",
                "config": {
                    "Env": list(self.env),
                    "Cmd": ["/bin/sh"],
                    "Labels": dict(self.labels),
                },
                "rootfs": {"type": "layers", "diff_ids": [x.diff_id for x in self.layers]},
                "history": [{"created_by": "tests"} for _ in self.layers],
            }
        ).encode()

    def _manifest(self, config: bytes) -> bytes:
        manifest, config_type, layer_type = _TYPES[self.family]
        described = {"mediaType": config_type, "size": len(config), "digest": _digest(config)}
        layers = [
            {"mediaType": layer_type, "size": x.path.stat().st_size, "digest": x.digest}
            for x in self.layers
        ]
        document = {"schemaVersion": 2, "config": described, "layers": layers}
        if self.family == "docker":  # OCI leaves it out, as its specification allows
            document["mediaType"] = manifest
        return json.dumps(document).encode()


def small_base(*more: str) -> BaseImage:
    """Debian with Python 3.11 and `more` of its packages, unpacked but not configured."""
    return BaseImage((_debian((*_PYTHON, *more)),))


def big_base() -> BaseImage:
    """The same with more than 1 GB of data that can't be compressed."""
    return BaseImage(
        (_debian(_PYTHON), *(_noise(number, _BIG_LAYER) for number in range(_BIG_LAYERS)))
    )


def tiny_image() -> BaseImage:
    """An image that can't run, for tests that only move it."""
    return BaseImage((_noise(0, _TINY_LAYER),))


def _debian(packages: tuple[str, ...]) -> Blob:
    recipe = hashlib.sha256(repr((_SUITE, packages, _COMPILED)).encode()).hexdigest()[:12]

    def pack(draft: Path) -> None:
        tar = draft.with_suffix(f"{draft.suffix}.tar")
        include = f"--include={','.join(packages)}"
        run("mmdebstrap", "--variant=extract", include, _COMPILED, _SUITE, str(tar))
        with tar.open("rb") as source, gzip.GzipFile(draft, "wb", 4, mtime=0) as packed:
            shutil.copyfileobj(source, packed, 1 << 20)
        tar.unlink()

    return kept_layer(f"debian-{recipe}", pack)


def _noise(number: int, size: int) -> Blob:
    """A layer with one file of random bytes, stored and not compressed."""

    def pack(draft: Path) -> None:
        with tarfile.open(draft, "w:gz", compresslevel=0) as tar:
            entry = tarfile.TarInfo(f"noise/{number}")
            entry.size = size
            tar.addfile(entry, io.BytesIO(random.Random(number).randbytes(size)))

    return kept_layer(f"noise-{number}-{size}", pack)


def kept_layer(name: str, pack: Callable[[Path], None]) -> Blob:
    """Return the layer of that name from the cache; `pack` writes its file where it is missing.

    One process at a time: Debian's packages never give the same bytes twice, so a second file would
    not be what the first one's digests say.
    """
    path = CACHE / f"{name}.tar.gz"
    facts = path.with_suffix(".json")
    with alone(path):
        if not facts.exists():  # it comes last
            draft = path.with_suffix(f".{os.getpid()}")
            pack(draft)
            draft.replace(path)
            layer = blob(path)
            draft.write_text(json.dumps([layer.digest, layer.diff_id]))
            draft.replace(facts)
    return Blob(path, *json.loads(facts.read_text()))


def blob(path: Path) -> Blob:
    """Return the layer in a file."""
    with path.open("rb") as packed, gzip.open(path) as tar:
        files = (packed, tar)
        digests = [f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" for file in files]
    return Blob(path, *digests)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _linked(host: str, repository: str, digest: str, source: Path) -> bool:
    """Give a registry on this disk the file itself: gigabytes are neither sent nor kept twice."""
    storage = STORAGE.get(host)
    if storage is None:
        return False
    algorithm, _, name = digest.partition(":")
    blob = storage / "blobs" / algorithm / name[:2] / name / "data"
    link = storage / "repositories" / repository / "_layers" / algorithm / name / "link"
    for path in (blob, link):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if not blob.exists():
            os.link(source, blob)
    except OSError:  # another file system
        return False
    link.write_text(digest)
    return True


def _upload(http: httpx.Client, repository: str, digest: str, source: Path | bytes) -> None:
    if http.head(f"/v2/{repository}/blobs/{digest}").status_code == 200:
        return
    if isinstance(source, Path) and _linked(
        http.base_url.netloc.decode(), repository, digest, source
    ):
        return
    begun = http.post(f"/v2/{repository}/blobs/uploads/").headers["Location"]
    url = httpx.URL(begun).copy_merge_params({"digest": digest})
    if isinstance(source, bytes):
        answer = http.put(url, content=source)
    else:
        with source.open("rb") as file:
            answer = http.put(url, content=file)
    assert answer.status_code == 201, answer.text
