"""A container registry of this machine, which keeps its layers from one rehearsal to the next."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal.access import is_allowed
from distrain_nb.rehearsal.engine import processes
from distrain_nb.rehearsal.engine.gateway import Gateway
from distrain_nb.rehearsal.needs import PROGRAMS, REGISTRY
from distrain_nb.scratch import Scratch
from distrain_nb.worker.machine.environment import variables


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Run the `distribution` registry over `folder`; give `host:port`.

    Raises DistrainError if the program is not installed or doesn't start.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise DistrainError(
            "A rehearsal keeps images in a registry of its own, and this machine has none: "
            f"{REGISTRY}."
        )
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**variables(), "OTEL_TRACES_EXPORTER": "none"}
    with Scratch("registry") as scratch:  # a short path, as a socket's must be
        config, log, address = scratch / "config.yml", scratch / "log.txt", scratch / "socket"
        config.write_text(yaml.safe_dump(_settings(folder, address)), encoding="utf-8")
        command = [program, "serve", str(config)]
        with processes.service("registry", command, environment, log, address.exists, 5.0):
            gateway = Gateway(socket.create_server(("127.0.0.1", 0)), address, is_allowed)
            yield gateway.address
            gateway.close()


def _settings(folder: Path, address: Path) -> dict[str, object]:
    return {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "storage")}},
        "http": {"net": "unix", "addr": str(address), "secret": "rehearsal"},
    }
