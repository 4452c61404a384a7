"""Services that the tests share: started when the first test needs them, once a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .services.bases import BaseImage, big_base, small_base, tiny_image
from .services.docker import Docker, docker_daemon
from .services.registries import registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the logins and caches of the person who runs it."""
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path / "distrain"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


@pytest.fixture(scope="session")
def open_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture(scope="session")
def small() -> BaseImage:
    return small_base()


@pytest.fixture(scope="session")
def big() -> BaseImage:
    return big_base()


@pytest.fixture(scope="session")
def tiny() -> BaseImage:
    return tiny_image()


@pytest.fixture(scope="session")
def tiny_base(open_registry: str, tiny: BaseImage) -> str:
    """An image of 2 MB in the open registry."""
    name = f"{open_registry}/bases/tiny:1"
    tiny.push(name)
    return name


@pytest.fixture(scope="session")
def base(open_registry: str, small: BaseImage) -> str:
    """Debian with Python in the open registry."""
    name = f"{open_registry}/bases/python:3.11"
    small.push(name)
    return name


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    with docker_daemon() as daemon:
        yield daemon


@pytest.fixture
def other_registry(tmp_path: Path) -> Iterator[str]:
    """An open registry that holds nothing."""
    with registry(tmp_path / "other") as host:
        yield host
