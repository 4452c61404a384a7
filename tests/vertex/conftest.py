"""A registry with base images, and what runs the replicas of rehearsals: once a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.services.bases import CACHE, small_base
from tests.image.services.docker import docker_daemon
from tests.image.services.registries import registry
from tests.kernels import Kernel, kernel
from tests.vertex.packages import base_with


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
def without_docker(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine where bubblewrap runs the replicas."""
    folder = tmp_path_factory.mktemp("without-docker")
    home = _that_has_packed(folder / "home")
    return {"DOCKER_HOST": f"unix://{folder / 'nobody'}", "DISTRAIN_HOME": str(home)}


def _that_has_packed(home: Path) -> Path:
    """Make a home that has read these bases and packed PyTorch before, in an earlier session."""
    kept = CACHE / "home" / "cache"
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
