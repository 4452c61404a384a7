"""One Jupyter server for all tests of the extension, and the list of runs that it has."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from distrain_nb.run import Store
from tests.server.servers import Server, jupyter_server


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISTRAIN_HOME", str(tmp_path_factory.mktemp("home")))
        yield Store()


@pytest.fixture(scope="package")
def server(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with jupyter_server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
