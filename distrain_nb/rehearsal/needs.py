"""What rehearsals need of this machine, said as one list before anything starts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

EXTRA = "pip install 'distrain-nb[rehearsal]'"
PROGRAMS = ("docker-registry", "registry")
REGISTRY = (
    "apt-get install docker-registry on Debian and Ubuntu, or the program `registry` of "
    "https://github.com/distribution/distribution on the PATH"
)
ENGINES = ("docker", "podman", "bwrap")
ENGINE = "apt-get install bubblewrap on Debian and Ubuntu, or Docker or Podman"


def missing_requirements(modules: Mapping[str, str], *, engine: bool) -> Sequence[str]:
    """Return what this machine lacks, each with the way to get it.

    `modules` are distributions by the modules that they bring; with `engine`, replicas run as
    containers only.
    """
    packages = [name for module, name in modules.items() if not _is_there(module)]
    lacks = [f"{', '.join(packages)}: not installed; {EXTRA}"] if packages else []
    if not _has_program(PROGRAMS):
        lacks.append(f"no registry for images; {REGISTRY}")
    if engine and not _has_program(ENGINES):
        lacks.append(f"nothing that runs containers; {ENGINE}")
    return lacks


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def _has_program(names: Sequence[str]) -> bool:
    return any(map(shutil.which, names))
