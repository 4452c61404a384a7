"""Looking inside a base: names in layers tell its Python, its packages and its C library."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from distrain_nb.image.base import read_base
from distrain_nb.image.layer_scan import LayerScan, scan_layers
from distrain_nb.image.registry.client import Registry
from distrain_nb.image.registry.reference import Reference

from .services.bases import BaseImage, Blob

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.brief

SITE = "opt/conda/lib/python3.10/site-packages"
LINKS = {"opt/conda/bin/python3": "python3.10", "opt/conda/bin/python3.10": ""}
ENV = ("PATH=/opt/conda/bin:/usr/bin",)


def layer(folder: Path, *names: str, links: dict[str, str] | None = None) -> Blob:
    """A layer with empty files, and with links where there is a target."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, target in {**dict.fromkeys(names, ""), **(links or {})}.items():
            entry = tarfile.TarInfo(name)
            if target:
                entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    packed = gzip.compress(data.getvalue(), mtime=0)
    digest, diff_id = (f"sha256:{hashlib.sha256(x).hexdigest()}" for x in (packed, data.getvalue()))
    path = folder / digest[7:19]
    path.write_bytes(packed)
    return Blob(path, digest, diff_id)


def seen(host: str, *layers: Blob, env: tuple[str, ...] = ENV) -> LayerScan:
    where = Reference.parse(f"{host}/inside/base:1")
    BaseImage(layers, env=env).push(str(where))
    with closing(Registry(host, [])) as registry:
        return scan_layers(read_base(registry, where, "linux/amd64"), registry, None)


def test_packages_of_the_python_that_starts(open_registry: str, tmp_path: Path) -> None:
    files = (
        f"{SITE}/numpy-1.26.4.dist-info/METADATA",
        f"./{SITE}/Foo_Bar-2.0rc1.dist-info/",
        f"{SITE}/old-1.0-py3.10.egg-info",
        "usr/lib/python3/dist-packages/debian-0.1.dist-info/METADATA",
        "usr/lib/python3.8/site-packages/other-9.dist-info/METADATA",
        "usr/bin/python3.8",
    )
    found = seen(open_registry, layer(tmp_path, *files, links=LINKS))
    assert found.python == "3.10"
    assert found.packages["numpy"] == "1.26.4"
    assert found.packages["foo-bar"] == "2.0rc1"
    assert set(found.packages) == {"numpy", "foo-bar", "old"}
    assert (found.glibc, found.musl) == (None, False)


def test_what_a_later_layer_removes_is_gone(open_registry: str, tmp_path: Path) -> None:
    below = layer(
        tmp_path,
        f"{SITE}/gone-1.dist-info/METADATA",
        f"{SITE}/upgraded-1.dist-info/METADATA",
        f"{SITE}/kept-1.dist-info/METADATA",
        links=LINKS,
    )
    above = layer(
        tmp_path,
        f"{SITE}/.wh.gone-1.dist-info",
        f"{SITE}/.wh.upgraded-1.dist-info",
        f"{SITE}/upgraded-2.dist-info/METADATA",
    )
    found = seen(open_registry, below, above)
    assert dict(found.packages) == {"kept": "1", "upgraded": "2"}


def test_an_opaque_folder_hides_what_is_below_it(open_registry: str, tmp_path: Path) -> None:
    below = layer(tmp_path, f"{SITE}/gone-1.dist-info/METADATA", links=LINKS)
    above = layer(tmp_path, f"{SITE}/.wh..wh..opq", f"{SITE}/new-1.dist-info/METADATA")
    assert dict(seen(open_registry, below, above).packages) == {"new": "1"}


@pytest.mark.parametrize(
    ("links", "version"),
    [
        ({"usr/bin/python3": "/etc/alternatives/python3",
          "etc/alternatives/python3": "/usr/bin/python3.9", "usr/bin/python3.9": ""}, "3.9"),
        ({"usr/local/bin/python3": "python3.12", "usr/local/bin/python3.12": "",
          "usr/bin/python3": "python3.11"}, "3.12"),
        ({"usr/bin/python3": "python3"}, None),
        ({}, None),
    ],
    ids=["through another folder", "the first on the PATH", "a link to itself", "none"],
)  # fmt: skip
def test_the_python_is_at_the_end_of_the_links(
    open_registry: str, tmp_path: Path, links: dict[str, str], version: str | None
) -> None:
    assert seen(open_registry, layer(tmp_path, "a", links=links), env=()).python == version


def test_the_c_library(open_registry: str, tmp_path: Path) -> None:
    old = layer(tmp_path, "lib/x86_64-linux-gnu/libc-2.27.so")
    alpine = layer(tmp_path, "lib/ld-musl-x86_64.so.1")
    assert seen(open_registry, old).glibc == (2, 27)
    file = "lib/x86_64-linux-gnu/libc.so.6"
    assert seen(open_registry, layer(tmp_path, file)).glibc == (2, 34)
    link = layer(tmp_path, "lib/libc-2.31.so", links={file: "libc-2.31.so"})
    assert seen(open_registry, link).glibc == (2, 31)
    assert seen(open_registry, alpine).musl
