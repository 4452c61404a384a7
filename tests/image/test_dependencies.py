"""The packages layer: what the base lacks, for the base's Python, as wheels."""

from __future__ import annotations

import io
import re
import tarfile
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from distrain_nb.errors import ImageError
from distrain_nb.image.builders import uv
from distrain_nb.image.builders.append import build
from distrain_nb.image.builders.dependencies import read_requirements, requirements_to_resolve
from distrain_nb.image.image import Image
from distrain_nb.image.installed import Installed
from distrain_nb.image.recipe import Recipe
from distrain_nb.image.requirement_names import requirement_name

from .programs import SimpleProgram
from .services.faults import faulty
from .wheels import wheel

if TYPE_CHECKING:
    from pathlib import Path

    from .services.bases import BaseImage

NUMPY = "numpy==2.2.0"


def build_with(
    base: str, requirements: tuple[str, ...] = (), asked: tuple[str, ...] = (), **more: Any
) -> Image:
    host = base.partition("/")[0]
    recipe = Recipe(base, f"{host}/packages/job:1", requirements=asked, **more)
    return build(SimpleProgram(requirements=requirements), recipe)


def files_in(image: Image) -> dict[str, bytes]:
    """The files of the packages layer by their place below the packages folder."""
    layer = next(x for x in image.layers if x.purpose == "packages")
    where = image.reference
    url = f"http://{where.registry}/v2/{where.repository}/blobs/{layer.digest}"
    with tarfile.open(fileobj=io.BytesIO(httpx.get(url).content)) as tar:
        return {
            entry.name.removeprefix("opt/distrain/packages/"): _read(tar, entry)
            for entry in tar
            if entry.isfile()
        }


def _read(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    assert file is not None
    return file.read()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is uv's only source."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return folder


@pytest.fixture
def bare(open_registry: str, tiny: BaseImage) -> str:
    """A base that says nothing of its Python."""
    name = f"{open_registry}/bases/bare:1"
    tiny.with_(env=("PATH=/bin",)).push(name)
    return name


def test_numpy_for_the_base_and_not_for_this_machine(open_registry: str, tiny: BaseImage) -> None:
    base = f"{open_registry}/bases/arm:3.12"
    tiny.with_(architecture="arm64", env=("PYTHON_VERSION=3.12.4",)).push(base)
    image = build_with(base, (NUMPY,), platform="linux/arm64")
    files = files_in(image)
    assert any(name.endswith("cpython-312-aarch64-linux-gnu.so") for name in files)
    assert not any("x86_64" in name or name.endswith(".pyc") for name in files)
    assert image.labels["distrain-nb.packages"] == NUMPY
    assert image.labels["distrain-nb.python"] == "3.12"


def test_the_same_requirements_are_neither_resolved_nor_packed_nor_sent_again(
    tiny_base: str, shelf: Path
) -> None:
    wheel(shelf, "ours", "1.0")
    first = build_with(tiny_base, ("ours==1.0",))
    (shelf / "ours-1.0-py3-none-any.whl").unlink()
    second = build_with(tiny_base, ("ours==1.0",))
    ways = {layer.purpose: (layer.how, layer.digest) for layer in second.layers}
    digest = next(x.digest for x in first.layers if x.purpose == "packages")
    assert ways["packages"] == ("already there", digest)


def test_another_cache_makes_the_same_layer(
    tiny_base: str, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {"ours-1.0.dist-info/entry_points.txt": "[console_scripts]\nours = ours:main\n"}
    wheel(shelf, "ours", "1.0", **script)
    digests = []
    for home in ("one", "a-much-longer-name"):
        monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path / home))
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / home / "uv"))
        image = build_with(tiny_base, ("ours==1.0",))
        digests.append(next(x.digest for x in image.layers if x.purpose == "packages"))
    assert digests[0] == digests[1]
    files = files_in(image)
    assert files["bin/ours"].startswith(b"#!/usr/bin/env python3\n")
    assert b"bin/ours,," in files["ours-1.0.dist-info/RECORD"]


def test_what_the_base_has_is_neither_added_nor_upgraded(
    open_registry: str, tiny: BaseImage, shelf: Path
) -> None:
    for version in ("1.0", "2.0"):
        wheel(shelf, "framework", version, needs=("huge-driver",))
        wheel(shelf, "tool", version, needs=(f"framework>={version}",))
    base = f"{open_registry}/bases/framework:1"
    labels = (("distrain-nb.packages", "framework==1.0+cu121 Other_Thing==3"),)
    tiny.with_(labels=labels).push(base)
    image = build_with(base, ("framework==2.0", "tool==1.0", "other-thing==3"))
    assert image.labels["distrain-nb.packages"] == "tool==1.0"
    assert image.notes == ("framework is the base's 1.0+cu121; the notebook has 2.0",)
    assert {name.partition("/")[0] for name in files_in(image)} == {"tool", "tool-1.0.dist-info"}
    with pytest.raises(ImageError, match="The base's own packages are not changed") as caught:
        build_with(base, (), ("tool==2.0",))
    assert "framework==1.0+cu121" in str(caught.value)


def test_nothing_to_add_is_no_layer(open_registry: str, tiny: BaseImage) -> None:
    base = f"{open_registry}/bases/complete:1"
    tiny.with_(labels=(("distrain-nb.packages", NUMPY),)).push(base)
    image = build_with(base, (NUMPY,))
    assert [layer.purpose for layer in image.layers] == ["base", "worker", "program"]


def test_dependencies_come_along(tiny_base: str, shelf: Path) -> None:
    wheel(shelf, "top", "1.0", needs=("below>1", "never; python_version < '3'"))
    wheel(shelf, "below", "1.5")
    image = build_with(tiny_base, (), ("top",))
    assert image.labels["distrain-nb.packages"] == "below==1.5 top==1.0"


def test_a_base_that_does_not_say_which_python_it_has(bare: str, shelf: Path) -> None:
    wheel(shelf, "ours", "1.0")
    with pytest.raises(ImageError, match=rf"{bare} doesn't say which Python.*--python 3.11"):
        build_with(bare, ("ours==1.0",))
    assert build_with(bare, ("ours==1.0",), python="3.9").labels["distrain-nb.python"] == "3.9"


def test_without_requirements_nobody_asks_for_the_python(bare: str) -> None:
    assert len(build_with(bare).layers) == 3


def test_the_base_can_be_looked_into(open_registry: str, small: BaseImage, shelf: Path) -> None:
    source = f"{open_registry}/bases/debian:1"
    small.with_(env=("PATH=/usr/local/bin:/usr/bin",)).push(source)
    wheel(shelf, "ours", "1.0")
    with faulty(open_registry) as proxy:
        base = source.replace(open_registry, proxy.host)
        image = build_with(base, ("ours==1.0",), look_inside=True)
        assert image.labels["distrain-nb.python"] == "3.11"
        layer = small.layers[0].digest
        assert proxy.count(f"GET .*{layer}") == 1
        build_with(base, ("ours==1.0",), look_inside=True)
        assert proxy.count(f"GET .*{layer}") == 1


def test_a_package_without_a_wheel_names_itself(tiny_base: str, shelf: Path) -> None:
    archive = shelf / "onlysource-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in {
            "PKG-INFO": "Metadata-Version: 2.1\nName: onlysource\nVersion: 1.0\n",
            "setup.py": "from setuptools import setup; setup(name='onlysource', version='1.0')",
        }.items():
            entry = tarfile.TarInfo(f"onlysource-1.0/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    with pytest.raises(ImageError, match=r"^onlysource has no wheel .* --builder docker"):
        build_with(tiny_base, ("onlysource==1.0",))


def test_a_package_that_does_not_exist(tiny_base: str, shelf: Path) -> None:
    with pytest.raises(ImageError, match=r"cannot resolve the program's packages:(.|\n)*nosuch"):
        build_with(tiny_base, (), ("nosuchpackage",))


def test_a_login_in_an_indexs_address_is_not_shown(
    tiny_base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://me:hunter2@127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(ImageError) as caught:
        build_with(tiny_base, (), ("nosuchpackage",))
    assert "127.0.0.1:9" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_pips_settings_are_uvs(
    tiny_base: str, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(shelf, "ours", "1.0")
    monkeypatch.delenv("UV_FIND_LINKS")
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nfind-links = {shelf}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    uv.pip_settings.cache_clear()
    image = build_with(tiny_base, ("ours==1.0",))
    uv.pip_settings.cache_clear()
    assert image.labels["distrain-nb.packages"] == "ours==1.0"


def test_what_is_asked_for_goes_before_what_is_imported() -> None:
    contents = Installed("3.11", "x86_64-manylinux_2_28", {"has": "1"})
    imported = ("Some_Package==1.0", "torch==2.3.0+cpu", "has==2", "other==1")
    wanted, notes = requirements_to_resolve(imported, ("some.package>=2", "has>0"), contents)
    assert wanted == ("some.package>=2", "has>0", "torch==2.3.0", "other==1")
    assert notes == ()


@pytest.mark.parametrize(
    ("imported", "has", "note"),
    [
        (
            "tensorflow-cpu==2.21.0",
            {"tensorflow": "2.17.0"},
            "tensorflow-cpu is the base's tensorflow 2.17.0; "
            "the notebook has tensorflow-cpu 2.21.0",
        ),
        ("torch==2.8.0+cpu", {"torch": "2.8.0+cu126"}, ""),
        ("torch==2.8.0", {"torch": "2.8.0+cu126"}, ""),
        (
            "torch==2.13.0",
            {"torch": "2.8.0+cu126"},
            "torch is the base's 2.8.0+cu126; the notebook has 2.13.0",
        ),
        (
            "faiss-cpu==1.9",
            {"faiss-gpu-cu12": "1.9"},
            "faiss-cpu is the base's faiss-gpu-cu12 1.9; the notebook has faiss-cpu 1.9",
        ),
    ],
)
def test_a_build_for_gpus_is_not_replaced(imported: str, has: dict[str, str], note: str) -> None:
    wanted, notes = requirements_to_resolve(
        (imported,), (), Installed("3.11", "x86_64-manylinux_2_28", has)
    )
    assert wanted == ()
    assert notes == ((note,) if note else ())


def test_another_build_that_is_asked_for_is_enough() -> None:
    contents = Installed("3.11", "x86_64-manylinux_2_28", {})
    wanted, _ = requirements_to_resolve(
        ("tensorflow-cpu==2.21.0",), ("tensorflow==2.21.0",), contents
    )
    assert wanted == ("tensorflow==2.21.0",)


def test_a_prebuilt_container_is_known_from_the_catalog() -> None:
    from distrain_nb.image.base import Base
    from distrain_nb.image.installed import find_installed
    from distrain_nb.image.registry.client import Registry
    from distrain_nb.image.registry.image_config import ImageConfig
    from distrain_nb.image.registry.manifest import OCI, Descriptor, Manifest
    from distrain_nb.image.registry.reference import Reference

    name = "europe-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"
    config = ImageConfig.read(b'{"rootfs": {"diff_ids": []}, "os": "linux"}', "base")
    base = Base(Reference.parse(name), Manifest(OCI, Descriptor("c", "d", 1), ()), config)
    found = find_installed(base, Recipe(name, "a/b"), Registry("127.0.0.1:9", []), None)
    assert found == Installed("3.10", "x86_64-manylinux_2_28", {"tensorflow": "2.17"})


def test_a_requirements_file(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("# ours\nnumpy>=2  # for arrays\n\nurl @ https://example.com/a#sha256=1\n")
    assert read_requirements(path) == ("numpy>=2", "url @ https://example.com/a#sha256=1")
    path.write_text("numpy\n-r other.txt\n")
    with pytest.raises(ImageError, match=r"requirements\.txt, line 2: unsupported pip option '-r'"):
        read_requirements(path)
    path.write_text("not a requirement!\n")
    with pytest.raises(ImageError, match="invalid requirement 'not a requirement!'"):
        read_requirements(path)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("numpy", "numpy"),
        ("Foo.Bar_baz[x]>=1", "foo-bar-baz"),
        ("a @ https://b", "a"),
        ("x; python_version > '3'", "x"),
        ("x==1 --hash=sha256:00", "x"),
    ],
)
def test_names_of_requirements(line: str, name: str) -> None:
    assert requirement_name(line) == name


@pytest.mark.parametrize(
    ("glibc", "platform"),
    [(None, "2_28"), ((2, 17), "2_17"), ((2, 30), "2_28"), ((2, 31), "2_31"), ((2, 34), "2_34")],
)
def test_wheels_are_for_the_glibc_of_the_base(glibc: tuple[int, int] | None, platform: str) -> None:
    from types import SimpleNamespace

    from distrain_nb.image.installed import _platform
    from distrain_nb.image.layer_scan import LayerScan

    base: Any = SimpleNamespace(config=SimpleNamespace(platform="linux/amd64"))
    assert _platform(base, LayerScan(glibc=glibc)) == f"x86_64-manylinux_{platform}"


@pytest.mark.parametrize(
    ("device", "line", "has", "refused"),
    [
        ("gpu", "torch==2.4.0", {"torch": "2.4.0+cpu"}, True),
        ("gpu", "torch==2.4.0", {"torch": "2.4.0+cu121"}, False),
        ("cpu", "torch==2.4.0", {"torch": "2.4.0+cpu"}, False),
        ("gpu", "tensorflow==2.19.0", {"tensorflow-cpu": "2.19.0"}, True),
        ("gpu", "jax[cuda12]==0.10.2", {"jax": "0.10.2"}, True),
        ("gpu", "jax[cuda12]==0.10.2", {"jax": "0.9.0", "jax-cuda13-plugin": "0.9.0"}, False),
        ("tpu", "jax[tpu]==0.10.2", {"jax": "0.10.2"}, True),
        ("gpu", "jax[cuda12]==0.10.2", {}, False),
    ],
)
def test_a_base_that_leaves_devices_idle_is_refused(
    device: str, line: str, has: dict[str, str], refused: bool
) -> None:
    from distrain_nb.image.builders.dependencies import _unused_devices

    installed = Installed("3.11", "x86_64-manylinux_2_28", has)
    notes = _unused_devices((line,), Recipe("mine:1", "a/b", device=device), installed)
    assert len(notes) == refused
    for note in notes:
        assert re.match(f"mine:1 has .* does not use the job's {device.upper()}s", note)
    asked = Recipe("mine:1", "a/b", (line,), device=device)
    assert _unused_devices((line,), asked, installed) == ()


def test_a_rehearsal_says_that_its_base_would_be_refused(
    open_registry: str, tiny: BaseImage
) -> None:
    """It runs where there may be no such device; the cloud's own job ends before it is sent."""
    base = f"{open_registry}/bases/of-cpus:1"
    labels = (("distrain-nb.packages", "torch==2.4.0+cpu"), ("distrain-nb.python", "3.11"))
    tiny.with_(labels=labels).push(base)
    with pytest.raises(ImageError, match=r"does not use the job's GPUs: name another base"):
        build_with(base, ("torch==2.4.0",), device="gpu")
    image = build_with(base, ("torch==2.4.0",), device="gpu", rehearsed=True)
    assert image.notes[0].endswith("the job's GPUs: the cloud's job would be refused")
