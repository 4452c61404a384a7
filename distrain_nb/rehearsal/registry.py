"""A container registry of this machine, which keeps its layers from one rehearsal to the next."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal.access import is_allowed
from distrain_nb.rehearsal.engine import processes
from distrain_nb.rehearsal.engine.processes import Gateway
from distrain_nb.rehearsal.needs import PROGRAMS, REGISTRY
from distrain_nb.scratch import Scratch

_START_S = 60.0


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
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    with Scratch("registry") as scratch:  # a short path, as a socket's must be
        config, log, address = scratch / "config.yml", scratch / "log.txt", scratch / "socket"
        config.write_text(yaml.safe_dump(_settings(folder, address)), encoding="utf-8")
        with log.open("wb") as out:
            command = [program, "serve", str(config)]
            process = processes.start(command, environment, stdout=out, stderr=out)
        try:
            _wait(process, address, log)
            gateway = Gateway(socket.create_server(("127.0.0.1", 0)), address, is_allowed)
            yield gateway.address
            gateway.close()
        finally:
            processes.stop(process, 5.0)


def _settings(folder: Path, address: Path) -> dict[str, object]:
    return {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "storage")}},
        "http": {"net": "unix", "addr": str(address), "secret": "rehearsal"},
    }


def _wait(process: subprocess.Popen[bytes], address: Path, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not address.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            output = log.read_text(encoding="utf-8", errors="replace")[-1000:]
            raise DistrainError(f"The rehearsal's registry doesn't start: {output}")
        time.sleep(0.02)
