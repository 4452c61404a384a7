"""A real MLflow server with a SQLite database, which a test stops and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from tests.conftest import eventually
from tests.tracking.ports import free_port

if TYPE_CHECKING:
    from mlflow import MlflowClient

SETTINGS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_SERVER_ALLOWED_HOSTS": "*"}


class Server:
    """Below a folder, at a port of its own; `by_another_name` nobody can tell that it is here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = f"http://127.0.0.1:{self._port}"
        self.by_another_name = f"http://{int(IPv4Address('127.0.0.1'))}:{self._port}"

    @property
    def client(self) -> MlflowClient:
        from mlflow import MlflowClient

        return MlflowClient(self.uri)

    def start(self) -> None:
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
                    *("--host", "127.0.0.1", "--port", str(self._port)),
                    *("--backend-store-uri", f"sqlite:///{self._folder}/mlflow.db"),
                    *("--artifacts-destination", str(self._folder / "artifacts")),
                ],
                cwd=self._folder,
                env={**os.environ, **SETTINGS},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert eventually(self._answers, 240), self.log

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.log
        try:
            return httpx.get(f"{self.uri}/health").status_code == 200
        except httpx.HTTPError:
            return False

    @property
    def log(self) -> str:
        return (self._folder / "server.log").read_text()[-3000:]

    def stop(self) -> None:
        """With all its workers, at once."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
