"""A registry with base images, and what runs the replicas of rehearsals: once a session."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.image.recipe import ROOT
from tests.image.services.bases import CACHE, small_base
from tests.image.services.docker import docker_daemon
from tests.image.services.registries import registry
from tests.kernels import Kernel, kernel
from tests.vertex.packages import base_with

KEPT = CACHE / "home"  # what a home keeps from one session to the next
PROGRAM = ROOT.removeprefix("/")


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the registry of base images listens."""
    with registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture(scope="session")
def base(images: str) -> str:
    """Debian with Python."""
    name = f"{images}/bases/python:3.11"
    small_base().push(name)
    return name


@pytest.fixture(scope="session")
def pytorch(images: str) -> str:
    """The same with PyTorch, as prebuilt containers have it."""
    name = f"{images}/bases/pytorch:2"
    base_with("torch", "numpy").push(name)
    return name


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Docker runs the replicas."""
    home = _that_has_packed(tmp_path_factory.mktemp("home"))
    patch = pytest.MonkeyPatch()
    with docker_daemon() as daemon:
        patch.setenv("DOCKER_HOST", f"unix://{daemon.socket}")
        patch.setenv("DISTRAIN_HOME", str(home))
        yield
    patch.undo()


@pytest.fixture(scope="session")
def without_docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a machine where bubblewrap runs the replicas.

    It has unpacked these bases before: a gigabyte each, which takes 15 to 25 CPU seconds.
    """
    folder = tmp_path_factory.mktemp("without-docker")
    home = _that_has_packed(folder / "home")
    kept, own = KEPT / "rehearsal" / "roots", home / "rehearsal" / "roots"
    kept.mkdir(parents=True, exist_ok=True)
    own.mkdir(parents=True)
    if kept.stat().st_dev == own.stat().st_dev:  # a program's root has links to files of its base
        for root in kept.iterdir():
            (own / root.name).symlink_to(root)
    yield {"DOCKER_HOST": f"unix://{folder / 'nobody'}", "DISTRAIN_HOME": str(home)}
    for root in own.iterdir():
        if not root.is_symlink() and _is_of_a_base(root):
            with contextlib.suppress(OSError):  # another process keeps the same just now
                root.rename(kept / root.name)


def _is_of_a_base(root: Path) -> bool:
    """Return whether an unpacked image has no program, so that the next session can use it."""
    return re.fullmatch(r"[0-9a-f]+", root.name) is not None and not (root / PROGRAM).exists()


def _that_has_packed(home: Path) -> Path:
    """Make a home that has read these bases and packed PyTorch before, in an earlier session."""
    kept = KEPT / "cache"
    kept.mkdir(parents=True, exist_ok=True)
    home.mkdir(exist_ok=True)
    (home / "cache").symlink_to(kept)
    return home


@pytest.fixture(scope="module")
def notebook(
    tmp_path_factory: pytest.TempPathFactory, without_docker: dict[str, str]
) -> Iterator[Kernel]:
    """A kernel there, with the extension loaded."""
    folder = tmp_path_factory.mktemp("notebook")
    with kernel(folder, {**os.environ, **without_docker}) as started:
        started.run("%load_ext distrain_nb")
        yield started
