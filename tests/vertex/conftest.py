"""A registry with a base image, and a Docker daemon for rehearsals: once a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.image.services.bases import CACHE, small_base
from tests.image.services.docker import docker_daemon
from tests.image.services.registries import registry


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Debian with Python."""
    with registry(tmp_path_factory.mktemp("registry")) as host:
        name = f"{host}/bases/python:3.11"
        small_base().push(name)
        yield name


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What runs the replicas of rehearsals, and a home that has packed PyTorch before."""
    home = tmp_path_factory.mktemp("home")
    packed = CACHE / "home" / "cache"
    packed.mkdir(parents=True, exist_ok=True)
    (home / "cache").symlink_to(packed)
    patch = pytest.MonkeyPatch()
    with docker_daemon() as daemon:
        patch.setenv("DOCKER_HOST", f"unix://{daemon.socket}")
        patch.setenv("DISTRAIN_HOME", str(home))
        yield
    patch.undo()
