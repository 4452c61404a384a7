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
def engine() -> Iterator[None]:
    """What runs the replicas of rehearsals."""
    patch = pytest.MonkeyPatch()
    with docker_daemon() as daemon:
        patch.setenv("DOCKER_HOST", f"unix://{daemon.socket}")
        # packing PyTorch takes a while
        patch.setenv("DISTRAIN_HOME", str(CACHE / "home"))
        yield
    patch.undo()
