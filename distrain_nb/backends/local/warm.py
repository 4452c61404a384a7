"""Finding, or starting, the fork server that has this environment's frameworks imported."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.worker import forkserver

if TYPE_CHECKING:
    from collections.abc import Mapping

# What differs from one kernel, or one terminal, to the next and matters to no framework.
_PASSING = ("JPY_", "DISTRAIN_", "PYDEVD_", "IPY_", "SSH_", "VSCODE_", "TERM", "XPC_", "PYTEST_")
_PASSING_NAMES = frozenset(
    ["_", "COLUMNS", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "GIT_PAGER", "LINES", "OLDPWD",
     "PAGER", "PWD", "SHLVL", "WINDOWID"]
)  # fmt: skip


def hand_over(folder: Path, additions: Mapping[str, str], idle: float) -> None:
    """Have the run in `folder` started; returns before it has.

    Its processes get this process's environment, as a user's own child would, and `additions`.
    """
    environment = {**_environment(), **additions}
    address = _address(environment)
    if not forkserver.send(address, folder):
        _start(address, environment, idle, folder)


def _start(address: Path, environment: Mapping[str, str], idle: float, folder: Path) -> None:
    command = [sys.executable, "-m", "distrain_nb.worker.forkserver"]
    with address.with_suffix(".log").open("ab") as log:
        subprocess.Popen(
            [*command, str(address), str(idle), str(folder)],
            cwd="/",
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _environment() -> dict[str, str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _PASSING_NAMES and not name.startswith(_PASSING)
    }
    if environment.get("MPLBACKEND", "").startswith("module://"):
        environment["MPLBACKEND"] = "agg"  # the kernel's own draws into its cells
    return environment


def _address(environment: Mapping[str, str]) -> Path:
    """One for each environment: the interpreter, its packages, and the variables."""
    packages = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    changed = [str(Path(path).stat().st_mtime_ns) for path in packages]
    variables = [f"{name}={value}" for name, value in sorted(environment.items())]
    text = "\0".join([sys.executable, *packages, *changed, *variables])
    name = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return _runtime_folder() / name


def _runtime_folder() -> Path:
    """A folder that only this user can enter; short, since a socket's path has 107 bytes."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    mine = f"distrain-{os.getuid()}"
    folder = Path(runtime, "distrain") if runtime else Path(tempfile.gettempdir(), mine)
    folder.mkdir(mode=0o700, exist_ok=True)
    owner = folder.lstat()
    if owner.st_uid != os.getuid() or owner.st_mode & 0o077:
        raise PermissionError(f"{folder} belongs to somebody else, or is open to others: remove it")
    return folder
