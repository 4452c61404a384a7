"""Two hosts of a training job: sandboxes with a network, a name and an `/opt/ml` of their own."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.program import Cell, Notebook, Program, capture
from distrain_nb.worker.machine.process_table import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NAMES = ("algo-1", "algo-2")
PROGRAM = "/opt/program"
# What hosts have of this machine, wherever it is: the checkout, and Python.
OURS = (str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix)
WORKER = (sys.executable, "-m", "distrain_nb.worker")


@dataclass(frozen=True, repr=False)
class Ended:
    """What a host's container said, and how it ended."""

    status: int
    out: str
    error: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def __repr__(self) -> str:
        return f"status {self.status}\n{self.out}\n--- stderr\n{self.error}"


@dataclass(frozen=True)
class Hosts:
    """Both hosts; `folder` holds what they write, `ml(name)` a host's `/opt/ml`."""

    folder: Path
    namespaces: tuple[str, ...]
    readable: Mapping[str, Path] = field(default_factory=dict)

    def ml(self, name: str) -> Path:
        return self.folder / name

    def job(
        self,
        source: str | Program,
        names: Sequence[str] = NAMES,
        hyperparameters: Mapping[str, str] | None = None,
        channels: Mapping[str, Any] | None = None,
    ) -> None:
        """Lay out a job's files, a program among them, or one made of a cell."""
        program = (
            capture(Cell("Cell In[1]", source), 1, Notebook({}, (), Path.cwd()))
            if isinstance(source, str)
            else source
        )
        self.folder.mkdir(parents=True)
        program.write(self.folder / "program")
        (self.folder / "hosts").write_text(
            "127.0.0.1 localhost\n"
            + "".join(f"10.77.0.{n} {name}\n" for n, name in enumerate(NAMES, 1))
        )
        for name in names:
            resources = {
                "current_host": name,
                "current_instance_type": "ml.p3.2xlarge",
                "current_group_name": "homogeneousCluster",
                "hosts": list(names),
                "instance_groups": [
                    {
                        "instance_group_name": "homogeneousCluster",
                        "instance_type": "ml.p3.2xlarge",
                        "hosts": list(names),
                    }
                ],
                "network_interface_name": "eth0",
            }
            files = {
                "resourceconfig": resources,
                "hyperparameters": dict(hyperparameters or {}),
                "inputdataconfig": dict(channels or {}),
            }
            for folder in ("input/config", "input/data", "output/data", "model", "code"):
                (self.ml(name) / folder).mkdir(parents=True)
            for file, content in files.items():
                path = self.ml(name) / f"input/config/{file}.json"
                path.write_text(json.dumps(content))

    def start(
        self, name: str, command: Sequence[str] = WORKER, **told: str
    ) -> subprocess.Popen[str]:
        """Start a host's container."""
        namespace = self.namespaces[NAMES.index(name)]
        options = [
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/opt"),
            *(word for folder in OURS for word in ("--ro-bind", folder, folder)),
            *("--bind", str(self.ml(name)), "/opt/ml"),
            *("--ro-bind", str(self.folder / "program"), PROGRAM),
            *("--ro-bind", str(self.folder / "hosts"), "/etc/hosts"),
            *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", name),
            *("--die-with-parent", "--as-pid-1", "--chdir", "/opt/ml/code"),
        ]
        for inside, path in self.readable.items():
            options += ["--ro-bind", str(path), inside]
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": "/tmp",
            "DISTRAIN_PROGRAM": PROGRAM,
            "DISTRAIN_RUN": "run-1",
            **told,
        }
        return subprocess.Popen(
            ["ip", "netns", "exec", namespace, "bwrap", *options, "--", *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, names: Sequence[str] = NAMES, **told: str) -> list[Ended]:
        """Run the job with our worker on these hosts, to its end."""
        return finish([self.start(name, **told) for name in names])


def finish(started: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """Wait for the hosts of a job."""
    try:
        said = [process.communicate(timeout=600) for process in started]
    finally:
        for process in started:
            process.kill()
    return [Ended(p.returncode, *both) for p, both in zip(started, said, strict=True)]


def terminate(process: subprocess.Popen[str]) -> None:
    """SIGTERM to the container's first process, as a service sends it."""
    os.kill(descendants(process.pid)[0], signal.SIGTERM)


@contextlib.contextmanager
def network() -> Iterator[tuple[str, ...]]:
    """Two network namespaces and a cable between them."""
    namespaces = tuple(f"dn-{secrets.token_hex(4)}" for _ in NAMES)
    try:
        for namespace in namespaces:
            ip("netns", "add", namespace)
        first, second = namespaces
        cable = ("link", "add", "eth0", "netns", first, "type", "veth")
        ip(*cable, "peer", "name", "eth0", "netns", second)
        for number, namespace in enumerate(namespaces, 1):
            ip("-n", namespace, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip("-n", namespace, "link", "set", device, "up")
        yield namespaces
    finally:
        for namespace in namespaces:
            subprocess.run(["ip", "netns", "del", namespace], check=False)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
