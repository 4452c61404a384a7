"""Debian's `docker-registry` on a free port of the loopback interface."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .processes import free_port, listens, running

if TYPE_CHECKING:
    from collections.abc import Iterator

USER, PASSWORD = "ada", "correct-horse"
# Where registries of this process keep their blobs, by host and port.
STORAGE: dict[str, Path] = {}
_HTPASSWD = f"{USER}:$2y$05$VNLxhfHPGbwhr2g2e1Xu5Ou7NZ2xS3.Z/im1QL.qWMcSbEAGw5cum\n"


@contextlib.contextmanager
def registry(folder: Path, auth: dict[str, Any] | None = None) -> Iterator[str]:
    """An open registry, or one with distribution's `auth` settings. Gives its host and port."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    settings = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(folder / "storage")},
            "delete": {"enabled": True},
        },
        "http": {"addr": f"127.0.0.1:{port}", "secret": "of no importance"},
        **({"auth": auth} if auth else {}),
    }
    config = folder / "config.yml"
    config.write_text(yaml.safe_dump(settings))
    command = ["docker-registry", "serve", str(config)]
    env = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    host = f"127.0.0.1:{port}"
    with running(command, folder / "log", lambda: listens(port), env):
        STORAGE[host] = folder / "storage" / "docker" / "registry" / "v2"
        yield host
        del STORAGE[host]


def htpasswd(folder: Path) -> dict[str, Any]:
    """Settings for a registry that knows USER by PASSWORD."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "htpasswd"
    path.write_text(_HTPASSWD)
    return {"htpasswd": {"realm": "tests", "path": str(path)}}
