"""Replicas as processes of this machine's Python: where nothing runs images, or the image has no
base.

The program and our worker come from the unpacked image; its base and its packages don't: this
environment, from which they were captured, takes their place. Cloud Storage is not mounted below
/gcs, so the variables that name folders in it name those of this machine.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from distrain_nb.errors import ImageError
from distrain_nb.rehearsal.engine import processes
from distrain_nb.rehearsal.engine.image_root import host_path, make_folder
from distrain_nb.rehearsal.engine.replica import GRACE_S, ReplicaSpec
from distrain_nb.rehearsal.engine.unpacked import UnpackedImage, unpack
from distrain_nb.scratch import Scratch
from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.machine.ports import HeldPort

_PROGRAM, _PACKAGES = "DISTRAIN_PROGRAM", "DISTRAIN_PACKAGES"
_CLOUD_STORAGE, _MOUNTED = "gs://", "/gcs/"


@dataclass(frozen=True)
class BareProcesses:
    """The engine of last resort, for images that we have built; `reason` says why it is taken."""

    reason: str = "Docker, Podman and bubblewrap are missing here"

    @property
    def note(self) -> str:
        """What the log says of the engine."""
        return (
            "Replicas run as processes of this machine's Python, with the program of their image "
            f"but without a base and its packages, since {self.reason}."
        )

    def pull(self, image: str) -> None:
        """Unpack the image. Raises ImageError for one that is none of ours."""
        if _PROGRAM not in unpack(image).environment:
            raise ImageError(
                f"{image} can only run under Docker, Podman or bubblewrap, but {self.reason}"
            )

    def network(
        self,
        job: str,  # noqa: ARG002
        names: Sequence[str],
        *,
        apart: bool = False,  # noqa: ARG002
    ) -> BareNetwork:
        """Return addresses and ports for the replicas."""
        return BareNetwork(names)


class BareNetwork:
    """One job's processes. Names would not resolve, so addresses are numbers."""

    interface: ClassVar[str] = "lo"

    def reach(self, port: int) -> str:
        """Return `127.0.0.1:PORT`: replicas run on this machine itself."""
        return f"127.0.0.1:{port}"

    def __init__(self, names: Sequence[str]) -> None:
        self._scratch = Scratch("processes")
        self._held = {name: HeldPort() for name in names}

    @property
    def addresses(self) -> Mapping[str, str]:
        numbered = enumerate(self._held.items(), 1)
        return {name: f"127.0.1.{number}:{port.number}" for number, (name, port) in numbered}

    def start(self, replica: ReplicaSpec) -> BareProcess:
        """Run our worker with the replica's program, in a copy of where that works."""
        image = unpack(replica.image)
        folder = Path(tempfile.mkdtemp(dir=self._scratch.path))
        work, temporary = folder / "work", folder / "tmp"
        temporary.mkdir()
        origin = make_folder(image.root, image.settings.get("WorkingDir") or "/tmp")
        shutil.copytree(origin, work, symlinks=True)
        command = [sys.executable, "-m", "distrain_nb.worker", *replica.arguments]
        environment = {"TMPDIR": str(temporary), **_environment(replica, image)}
        return BareProcess(processes.start(command, environment, folder=work))

    def close(self) -> None:
        """Forget what the replicas wrote."""
        self._held.clear()
        self._scratch.close()


class BareProcess(processes.Started):
    """A replica's worker, whose ranks end with it."""

    def stop(self, grace: float = GRACE_S) -> None:
        """Send SIGTERM to the worker, and SIGKILL to what is left after `grace` seconds."""
        processes.stop(self.process, grace)


def _environment(replica: ReplicaSpec, image: UnpackedImage) -> dict[str, str]:
    worker = host_path(image.root, image.environment["PYTHONPATH"].partition(":")[0])
    left_out = {_PACKAGES, "TMPDIR"}
    inherited = {name: value for name, value in variables().items() if name not in left_out}
    return {
        **inherited,
        **{
            name: _on_this_machine(value, replica.mounts)
            for name, value in replica.environment.items()
        },
        "PYTHONUNBUFFERED": "1",
        _PROGRAM: str(host_path(image.root, image.environment[_PROGRAM])),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(worker), os.environ.get("PYTHONPATH")))),
    }


def _on_this_machine(value: str, mounts: Mapping[str, Path]) -> str:
    """Return a folder in Cloud Storage as this machine has it."""
    for target, folder in mounts.items():
        bucket = target.replace(_MOUNTED, _CLOUD_STORAGE, 1)
        if value == bucket or value.startswith(f"{bucket}/"):
            return str(folder) + value.removeprefix(bucket)
    return value
