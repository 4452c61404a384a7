"""Replicas as containers of Docker or Podman, on a network of their job's own."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from distrain_nb.errors import DistrainError, ImageError
from distrain_nb.image.registry.reference import Reference, is_loopback
from distrain_nb.program.progress import report
from distrain_nb.rehearsal.access import is_allowed
from distrain_nb.rehearsal.engine import processes
from distrain_nb.rehearsal.engine.gateway import Gateway
from distrain_nb.rehearsal.engine.replica import GRACE_S, ReplicaSpec
from distrain_nb.worker.machine.environment import variables

PROGRAMS = ("docker", "podman")
PORT = 2222

_LAYER_BEGINS = ("Pulling fs layer", "Already exists")
_LAYER_THERE = ("Pull complete", "Already exists")
_ASK_S = 20.0
# Places and versions, never credentials: docker, Podman, and how they are loaded.
_OF_CLIENT = re.compile(
    r"HOME|PATH|TMPDIR|(?:LD|XDG)_\w+|CONTAINERS?_(?:HOST|CONNECTION|CONF\w*|REGISTRIES_CONF)"
    r"|DOCKER_(?:HOST|CONTEXT|CONFIG|TLS\w*|CERT_PATH|API_VERSION)"
)
_OWNER = "distrain.rehearsal"
_OWNED = re.compile(rf"\b{re.escape(_OWNER)}[=:](\d+)")  # Podman shows some labels as maps


@dataclass(frozen=True)
class Docker:
    """The engine behind a command-line client."""

    client: str

    @property
    def note(self) -> str:
        return f"Replicas run as containers of {Path(self.client).name}."

    def pull(self, image: str) -> None:
        """Have the image here. Raises ImageError with the engine's words."""
        insecure = is_loopback(Reference.parse(image).registry) and self.client.endswith("podman")
        options = ("--tls-verify=false",) if insecure else ()
        report("pulling the image")
        with tempfile.TemporaryFile("w+") as errors:
            command = [self.client, "pull", *options, image]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as pulling:
                message = _layers_counted(pulling.stdout or ())
            errors.seek(0)
            message = errors.read().strip() or message
        if pulling.returncode and self._run("image", "inspect", image).returncode:
            raise ImageError(message)

    def network(
        self,
        job: str,
        names: Sequence[str],
        *,
        apart: bool = False,  # noqa: ARG002 - containers always are
    ) -> DockerNetwork:
        """Create the job's network. Raises DistrainError if the engine can't."""
        self._sweep()
        done = self._run("network", "create", "--label", f"{_OWNER}={os.getpid()}", job)
        if done.returncode:
            raise DistrainError(f"{self.client} cannot create a network: {done.stderr.strip()}")
        return DockerNetwork(self.client, job, {name: f"{name}:{PORT}" for name in names})

    def _sweep(self) -> None:
        """Remove what rehearsals have left that were killed."""
        for kind, listing in (("container", ("-a",)), ("network", ())):
            filters = ("--filter", f"label={_OWNER}", "--format", "{{.ID}} {{.Labels}}")
            for line in self._run(kind, "ls", *listing, *filters).stdout.splitlines():
                owner = _OWNED.search(line)
                if owner and not Path(f"/proc/{owner[1]}").exists():
                    force = ("-f",) if kind == "container" else ()
                    self._run(kind, "rm", *force, line.partition(" ")[0])

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.client, *arguments], capture_output=True, text=True, check=False
        )


def find() -> Docker | None:
    """Return the first engine that answers."""
    for name in PROGRAMS:
        client = shutil.which(name)
        if client is not None and _answers(client):
            return Docker(client)
    return None


def _layers_counted(lines: Iterable[str]) -> str:
    """Report how many layers of a `docker pull` are there; gives its last other line."""
    is_done: dict[str, bool] = {}
    last = ""
    for line in lines:
        layer, _, state = line.strip().partition(": ")
        if state in _LAYER_BEGINS or layer in is_done:
            is_done[layer] = is_done.get(layer, False) or state in _LAYER_THERE
            report(f"pulling the image, {sum(is_done.values())} of {len(is_done)} layers are here")
        else:
            last = line.strip() or last
    return last


def _answers(client: str) -> bool:
    try:
        done = subprocess.run([client, "info"], capture_output=True, check=False, timeout=_ASK_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


@dataclass(frozen=True)
class DockerNetwork:
    """One job's containers; each is known to the others by its replica's name."""

    client: str
    job: str
    addresses: Mapping[str, str]
    _started: list[str] = field(default_factory=list)
    _gateways: list[Gateway] = field(default_factory=list)

    interface: ClassVar[str] = "eth0"

    def reach(self, port: int) -> str:
        """Return the network's own address on this machine, if the engine runs on this machine."""
        form = "{{(index .IPAM.Config 0).Gateway}}"
        command = [self.client, "network", "inspect", "--format", form, self.job]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            listener = socket.create_server((done.stdout.strip(), 0))
        except OSError:
            return ""
        self._gateways.append(Gateway(listener, port, is_allowed))
        return self._gateways[-1].address

    def start(self, replica: ReplicaSpec) -> DockerContainer:
        """Run a container of a pulled image."""
        name = f"{self.job}-{replica.name}-{len(self._started)}"
        self._started.append(name)
        command = [self.client, "run", *self._options(name, replica)]
        if replica.command:
            command.append(f"--entrypoint={replica.command[0]}")
        command += [replica.image, *replica.command[1:], *replica.arguments]
        environment = {**variables(), **_of_container(replica.environment)}
        return DockerContainer(self.client, name, processes.start(command, environment))

    def _options(self, name: str, replica: ReplicaSpec) -> Iterator[str]:
        yield from ("--rm", f"--name={name}", f"--label={_OWNER}={os.getpid()}")
        yield from (f"--hostname={replica.name}", f"--network={self.job}")
        yield from (f"--network-alias={replica.name}", "--pull=never")
        unlisted = _of_container(replica.environment)
        for name, value in replica.environment.items():
            yield f"--env={name}" if name in unlisted else f"--env={name}={value}"
        for target, folder in replica.mounts.items():
            yield f"--volume={folder}:{target}{':ro' if folder.is_symlink() else ''}"

    def close(self) -> None:
        """Remove the containers and the network."""
        for gateway in self._gateways:
            gateway.close()
        for arguments in (("rm", "-f", *self._started), ("network", "rm", self.job)):
            subprocess.run([self.client, *arguments], capture_output=True, check=False)


def _of_container(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that the client passes on from its own: every user of this machine may read
    a command line. Those by which it finds its engine would lead it astray."""
    return {name: value for name, value in environment.items() if not _OF_CLIENT.fullmatch(name)}


@dataclass(frozen=True)
class DockerContainer:
    """A container, followed by the client process that started it."""

    client: str
    name: str
    process: subprocess.Popen[bytes]

    def lines(self) -> Iterator[tuple[str, str]]:
        """Stream and text of each line until the container ends."""
        return processes.lines(self.process)

    def status(self) -> int | None:
        """Return the container's exit status; None while it runs."""
        return self.process.poll()

    def stop(self, grace: float = GRACE_S) -> None:
        """Ask the container to end, kill it after `grace` seconds."""
        if self.process.poll() is None:
            verb = ("stop", "-t", str(round(grace))) if grace else ("kill",)
            command = [self.client, *verb, self.name]
            done = subprocess.run(command, capture_output=True, check=False)
            processes.stop(self.process, _ASK_S if done.returncode == 0 else 0.0)
