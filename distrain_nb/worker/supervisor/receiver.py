"""Receives what transformers' Trainer and Kubeflow's programs send of their progress.

They POST `{"trainerStatus": {…}}` to the address in `KUBEFLOW_TRAINER_SERVER_URL`, with the token
of a file (KEP-2779 of kubeflow/trainer; transformers' `KubeflowCallback`): percents, seconds that
are left, metrics as texts. Here the address is on loopback. In a TrainJob of Kubeflow, which has
its own, there is no receiver.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from distrain_nb.worker.files.folder import TOKEN_FILE
from distrain_nb.worker.metrics.bars import ProgressReading
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE, append
from distrain_nb.worker.rank.program import RECEIVER

URL, TOKEN = RECEIVER, "KUBEFLOW_TRAINER_SERVER_TOKEN"
PATH = "/status"
MOST_BYTES = 64 << 10
ANSWER_WITHIN_S = 5.0
_LOOPBACK = "127.0.0.1"
_COUNTS = frozenset(["current_step", "total_steps", "current_epoch"])


class Receiver:
    """Listens for one run; `hear` is called with each reading, from another thread."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._secret = os.urandom(32).hex()
        self._socket: Optional[socket.socket] = None
        self._total = 0.0
        self._hear: Callable[[ProgressReading], None] = lambda _: None

    def open(self) -> Dict[str, str]:
        """Return the variables for the ranks; none where there can be no receiver."""
        if URL in self._environment or _has_proxy(self._environment):
            return {}
        path = self._folder / TOKEN_FILE
        try:
            descriptor = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(descriptor, self._secret.encode())
            os.close(descriptor)
            self._socket = socket.create_server((_LOOPBACK, 0))
        except OSError:  # no loopback, or no disk: the run goes on without
            return {}
        port = self._socket.getsockname()[1]
        return {URL: f"http://{_LOOPBACK}:{port}{PATH}", TOKEN: str(path)}

    def serve(self, hear: Callable[[ProgressReading], None]) -> None:
        """Answer from a thread, which imports what it needs when something comes."""
        self._hear = hear
        if self._socket:
            threading.Thread(target=self._serve, name="progress", daemon=True).start()

    def close(self) -> None:
        if self._socket:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self._socket.close()

    def _serve(self) -> None:
        while self._socket:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.settimeout(ANSWER_WITHIN_S)
                    self._answer(connection)
                except Exception:  # whatever a program sends, the run goes on
                    continue

    def _answer(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            status, answer = self._status_of(stream)
        body = json.dumps(answer).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _status_of(self, stream: Any) -> Tuple[str, Dict[str, Any]]:
        import hmac
        from email.parser import BytesParser

        words = stream.readline(4096).split()
        lines: List[bytes] = []
        while len(lines) < 100:
            lines.append(stream.readline(8192))
            if lines[-1] in (b"\r\n", b"\n", b""):
                break
        headers = BytesParser().parsebytes(b"".join(lines), headersonly=True)
        login = headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(login, f"Bearer {self._secret}".encode()):
            return "401 Unauthorized", {"message": "the token is not that of this run"}
        if words[:2] != [b"POST", PATH.encode()]:
            return "404 Not Found", {"message": f"expected POST {PATH}"}
        size = int(headers.get("Content-Length") or 0)
        if not 0 < size <= MOST_BYTES:
            return "413 Payload Too Large", {"message": f"expected 1 to {MOST_BYTES} bytes"}
        try:
            status = json.loads(stream.read(size))["trainerStatus"]
            reading = reading_of(status, self._total)
        except (ValueError, KeyError, TypeError) as error:
            return "422 Unprocessable Entity", {"message": f"no trainerStatus: {error!r:.200}"}
        if reading:
            self._total = reading.total if reading.unit == "steps" else 0.0
            self._hear(reading)
        self._chart(status, reading)
        return "200 OK", {"trainerStatus": status}

    def _chart(self, status: Mapping[str, Any], reading: Optional[ProgressReading]) -> None:
        """Draw the metrics, unless the program has event files of its own."""
        folder = Path(self._environment.get(FOLDER_VARIABLE, ""))
        numbers = metrics_of(status)
        shown = {name: value for name, value in numbers.items() if name not in _COUNTS}
        if not shown or not folder.is_absolute() or _has_others(folder):
            return
        step = numbers.get("current_step", reading.done if reading else 0)
        append(folder / "kubeflow", int(step), shown)


def reading_of(status: Mapping[str, Any], total: float = 0.0) -> Optional[ProgressReading]:
    """Return what a status says of progress: by its steps, which transformers sends, or else by its
    percents. `total` is how many steps were said before: the last status has none. Raises
    ValueError and TypeError."""
    metrics, percent = metrics_of(status), status.get("progressPercentage")
    remaining = status.get("estimatedRemainingSeconds")
    seconds = None if remaining is None else max(0.0, float(remaining))
    total = metrics.get("total_steps", total)
    done = total if percent == 100 else metrics.get("current_step", 0.0)
    if total > 0 and ("current_step" in metrics or percent in (0, 100)):
        return ProgressReading("Kubeflow", min(done, total), total, "steps", "", seconds)
    if percent is None:
        return None
    if not 0 <= float(percent) <= 100:
        raise ValueError(f"progressPercentage is {percent!r}, not 0 to 100")
    return ProgressReading("Kubeflow", float(percent), 100.0, "%", "", seconds)


def metrics_of(status: Mapping[str, Any]) -> Dict[str, float]:
    """Return the metrics that are finite numbers, by name."""
    numbers = {}
    for metric in status.get("metrics") or ():
        try:
            number = float(metric["value"])
        except ValueError:
            continue
        if math.isfinite(number):
            numbers[str(metric["name"])] = number
    return numbers


def _has_proxy(environment: Mapping[str, str]) -> bool:
    """Return whether a client may send loopback's requests, and the token, to a proxy."""
    lower = {name.lower(): value for name, value in environment.items()}
    bypassed = [host.strip() for host in lower.get("no_proxy", "").split(",")]
    uses = lower.get("http_proxy") or lower.get("all_proxy")
    return bool(uses) and not {"*", _LOOPBACK} & set(bypassed)


def _has_others(folder: Path) -> bool:
    names = (Path(top, name) for top, _, files in os.walk(str(folder)) for name in files)
    own_folder = folder / "kubeflow"
    return any("tfevents" in path.name and own_folder not in path.parents for path in names)
