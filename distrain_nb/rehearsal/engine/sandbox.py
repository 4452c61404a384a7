"""Replicas in sandboxes of bubblewrap, from unpacked images, where there is no container engine.

They share this machine's network. Each has an address of its own on the loopback interface and a
port of its own, since a server that listens on every address would else stand in another's way.
Replicas that have to be apart get a network of their own, where this machine lets us make one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from distrain_nb.rehearsal.engine import processes
from distrain_nb.rehearsal.engine.gateway import Gateway
from distrain_nb.rehearsal.engine.image_root import image_path, make_folder
from distrain_nb.rehearsal.engine.namespaces import Namespaces, possible
from distrain_nb.rehearsal.engine.replica import GRACE_S, ReplicaSpec
from distrain_nb.rehearsal.engine.unpacked import UnpackedImage, unpack
from distrain_nb.scratch import Scratch
from distrain_nb.worker.machine.ports import HeldPort
from distrain_nb.worker.machine.process_table import descendants

_PROGRAM = "bwrap"
# bubblewrap keeps the capabilities of root, also of the root of a user namespace: with them a job
# reads and writes any file of this machine by its handle, and remounts its image to write to it.
_POWERLESS = ("--cap-drop", "ALL")
_FRESH = ("/tmp", "/var/tmp", "/run", "/root", "/home", "/gcs")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Sandboxes:
    """The engine: bubblewrap at this path."""

    program: str

    @property
    def note(self) -> str:
        return (
            "Replicas run under bubblewrap from their unpacked images, without capabilities. They "
            "write only to folders and buckets of their own, and share this machine's network."
        )

    def pull(self, image: str) -> None:
        """Unpack the image. Raises ImageError if it can't be read."""
        unpack(image)

    def network(
        self,
        job: str,  # noqa: ARG002
        names: Sequence[str],
        *,
        apart: bool = False,
    ) -> Sandboxed:
        """Return addresses and ports for the replicas. Raises DistrainError if there is no
        network."""
        own_namespaces = Namespaces(len(names)) if apart and possible() else None
        return Sandboxed(self.program, names, own_namespaces)


def find() -> Sandboxes | None:
    """Return the engine, if bubblewrap is installed and may do its work."""
    program = shutil.which(_PROGRAM)
    if program is None:
        return None
    mounts = ("--ro-bind", "/", "/", "--proc", "/proc", "--remount-ro", "/proc")
    trial = [program, *_POWERLESS, "--unshare-pid", *mounts, "true"]
    done = subprocess.run(trial, capture_output=True, check=False)
    return Sandboxes(program) if done.returncode == 0 else None


class Sandboxed:
    """One job's sandboxes, and the folder with what each of them may write."""

    def __init__(
        self, program: str, names: Sequence[str], own_namespaces: Namespaces | None = None
    ) -> None:
        self._program = program
        self._names = tuple(names)
        self._namespaces = own_namespaces
        self._gateways: list[Gateway] = []
        self._scratch = Scratch("sandbox")
        self._held = {name: HeldPort() for name in names}
        hosts = ["127.0.0.1 localhost", "::1 localhost"]
        hosts += [f"{self._address(number)} {name}" for number, name in enumerate(names)]
        self._hosts = self._scratch.path / "hosts"
        self._hosts.write_text("".join(f"{line}\n" for line in hosts), encoding="utf-8")

    def _address(self, number: int) -> str:
        return self._namespaces.address(number) if self._namespaces else f"127.0.1.{number + 1}"

    @property
    def interface(self) -> str:
        return "eth0" if self._namespaces else "lo"

    def reach(self, port: int) -> str:
        """Return the address of a gateway where replicas are in a network of their own."""
        if self._namespaces is None:
            return f"127.0.0.1:{port}"
        self._gateways.append(Gateway(self._namespaces.listen(), port))
        return self._gateways[-1].address

    @property
    def addresses(self) -> Mapping[str, str]:
        return {name: f"{name}:{port.number}" for name, port in self._held.items()}

    def start(self, replica: ReplicaSpec) -> Sandbox:
        """Run a replica from its unpacked image."""
        image = unpack(replica.image)
        command = replica.command or tuple(image.settings.get("Entrypoint") or ())
        arguments = replica.arguments
        if not replica.command and not arguments:
            arguments = tuple(image.settings.get("Cmd") or ())
        inside = (
            self._namespaces.command(self._names.index(replica.name)) if self._namespaces else ()
        )
        with _unlisted(self._options(replica, image)) as options:
            sandbox = [*inside, self._program, "--args", str(options), "--", *command, *arguments]
            return Sandbox(processes.start(sandbox, inherited=(options,)))

    def _options(self, replica: ReplicaSpec, image: UnpackedImage) -> Iterator[str]:
        root = image.root
        yield from _POWERLESS
        yield from ("--die-with-parent", "--unshare-pid", "--as-pid-1", "--unshare-ipc")
        yield from ("--unshare-uts", "--hostname", replica.name)
        yield from ("--ro-bind", str(root), "/")
        proc = image_path(root, "/proc")
        # Below it are settings of the whole machine, and the kernel lets root's own processes write
        # to these without any capability: `kernel/core_pattern` names a program that it starts.
        yield from ("--proc", proc, "--remount-ro", proc, "--dev", image_path(root, "/dev"))
        for folder in _FRESH:
            yield from ("--tmpfs", image_path(root, folder))
        fresh = list(_FRESH)
        for target, source in replica.mounts.items():
            bind = "--ro-bind" if source.is_symlink() else "--bind"
            yield from (bind, str(source), _mount_point(root, target, fresh))
            fresh.append(target)
        yield from ("--ro-bind", str(self._hosts), image_path(root, "/etc/hosts"))
        yield from ("--ro-bind", "/etc/resolv.conf", image_path(root, "/etc/resolv.conf"))
        work = image_path(root, image.settings.get("WorkingDir") or "/")
        if work != "/":
            yield from ("--bind", str(self._copied(root, work)), work)
        yield from ("--chdir", work, "--clearenv")
        environment = {"PATH": _PATH, "HOME": "/root", **image.environment, **replica.environment}
        for name, value in environment.items():
            yield from ("--setenv", name, value)

    def _copied(self, root: Path, work: str) -> Path:
        """Return a program may write where it works; its neighbours and the next job don't see
        it."""
        copy = Path(tempfile.mkdtemp(dir=self._scratch.path)) / "work"
        return Path(shutil.copytree(make_folder(root, work), copy, symlinks=True))

    def close(self) -> None:
        """Forget what the replicas wrote, and take their network down."""
        for gateway in self._gateways:
            gateway.close()
        if self._namespaces is not None:
            self._namespaces.close()
        self._held.clear()
        self._scratch.close()


@contextmanager
def _unlisted(options: Iterable[str]) -> Iterator[int]:
    """Yield a descriptor from which options are read.

    Every user of this machine may read a command line, and these options have variables' values.
    """
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(os.fsencode(option) + b"\0" for option in options))
        file.seek(0)
        yield file.fileno()


def _mount_point(root: Path, target: str, mounted: Sequence[str]) -> str:
    """Return where to mount something. Other mounts cover what the image has below them."""
    outer = max((mount for mount in mounted if target.startswith(f"{mount}/")), key=len, default="")
    return (
        image_path(root, outer) + target.removeprefix(outer) if outer else image_path(root, target)
    )


class Sandbox(processes.Started):
    """A running sandbox; its first process is the replica's own."""

    def stop(self, grace: float = GRACE_S) -> None:
        """Send SIGTERM to the replica's first process; kill everything after `grace` seconds."""
        if grace and self.process.poll() is None:
            for inner in descendants(self.process.pid)[:1]:
                with suppress(ProcessLookupError):
                    os.kill(inner, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace)
        processes.stop(self.process, 0.0)
