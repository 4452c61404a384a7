"""The recipe for an image of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import distrain_nb

ROOT = "/opt/distrain"
WORKER = f"{ROOT}/worker"
PACKAGES = f"{ROOT}/packages"
PROGRAM = f"{ROOT}/program"
ENTRYPOINT = ("python3", "-m", "distrain_nb.worker")


class ProgramFiles(Protocol):
    """The files of a captured cell that a build needs."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """`name==version` of what the program imports."""
        ...

    def write(self, folder: Path) -> object:
        """Write `main.py` and the files that it needs."""
        ...


@dataclass(frozen=True)
class Recipe:
    """The recipe for an image of a program.

    `requirements` are added to the packages that the program imports. `python` (`3.11`) is needed
    if the base doesn't tell its version. With `look_inside`, the base's layers are read once to
    find Python and packages. `device` (gpu, tpu) is the device that packages have to use: a package
    of the base for the CPU alone is refused. If the image is `rehearsed`, it is only noted, as this
    machine may have no such device.

    With `bare_processes`, the base may be the empty image: processes of this machine's Python then
    run what is built. `allowed_secrets` are files, values and variables that the guard lets pass. A
    program that is `guarded` has passed it already. `run` are shell commands for builders that can
    run them.
    """

    base: str
    target: str
    requirements: tuple[str, ...] = ()
    python: str | None = None
    platform: str = "linux/amd64"
    device: str = ""
    rehearsed: bool = False
    bare_processes: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    allowed_secrets: tuple[str, ...] = ()
    guarded: bool = False
    run: tuple[str, ...] = ()
    look_inside: bool = False


def environment_for(recipe: Recipe, base: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the worker and of the recipe."""
    paths = (path for path in base.get("PYTHONPATH", "").split(":") if path not in ("", WORKER))
    return {
        "PYTHONPATH": ":".join((WORKER, *paths)),
        "PYTHONUNBUFFERED": "1",
        "DISTRAIN_PROGRAM": PROGRAM,
        "DISTRAIN_PACKAGES": PACKAGES,
        **recipe.environment,
    }


def worker_files() -> dict[str, Path]:
    """Return the files of this package that start ranks, by path below PYTHONPATH."""
    package = Path(distrain_nb.__file__).parent
    return {
        "distrain_nb/__init__.py": package / "__init__.py",
        "distrain_nb/data/__init__.py": package / "data/__init__.py",
        "distrain_nb/worker": package / "worker",
    }
