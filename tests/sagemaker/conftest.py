"""AWS's small services on this machine, once a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.vertex.conftest import base, engine, images  # noqa: F401 - what Vertex runs on too


@pytest.fixture(scope="session")
def aws() -> Iterator[Mapping[str, str]]:
    """S3, STS and CloudWatch Logs by address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield dict.fromkeys(("s3", "sts", "logs"), f"http://{host}:{port}")
    server.stop()
