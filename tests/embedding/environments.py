"""Environments with the packages of a place, of exactly the versions that it pins.

`pins/` has the lists that the places publish, whole. Of these an environment has what a notebook
needs, in the place's own Python where this machine has one of that minor version, else in the one
that runs the tests. torch is the exception: where a run needs it, it is the one of the tests, built
for CPUs, as no index here has the pinned builds. uv makes environments once, and
`scripts/cache.py` says where they are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from packaging.utils import canonicalize_name
from uv import find_uv_bin

from scripts.cache import alone, cache

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).parent / "pins"
CACHE = cache("embedding")
NOTEBOOK = ("ipykernel", "ipython", "ipywidgets", "plotly", "numpy", "pandas", "pip")
SERVER = ("jupyterlab", "jupyter-server", "nbconvert", "jupyter-collaboration")
# Else each server and kernel of each copy compiles what it imports.
INSTALL = ("pip", "install", "--compile-bytecode")


@dataclass(frozen=True)
class Place:
    """Where notebooks run: its list of packages, its Python, and what an environment has of it."""

    name: str
    python: str
    packages: tuple[str, ...]

    @property
    def pins(self) -> dict[str, str]:
        """Versions by canonical name."""
        lines = (PINS / f"{self.name}.txt").read_text(encoding="utf-8").splitlines()
        pairs = (line.split("==") for line in lines if not line.startswith("#"))
        return {canonicalize_name(name): pinned for name, pinned in pairs}

    @property
    def pinned(self) -> list[str]:
        """What uv is told of them."""
        return ["--constraint", str(PINS / f"{self.name}.txt")]


# A distribution's own start script takes jupyter-server-documents away in every app of Studio; it
# stays where the image is started otherwise.
DISTRIBUTION_4 = Place("sagemaker-4.4.1", "3.12", (*NOTEBOOK, *SERVER, "jupyter-server-documents"))
DISTRIBUTION_2 = Place("sagemaker-2.14.10", "3.11", (*NOTEBOOK, *SERVER, "scikit-learn"))
COLAB = Place("colab", "3.13", (*NOTEBOOK, "anywidget"))
PLACES = (DISTRIBUTION_4, DISTRIBUTION_2, COLAB)


def environment(place: Place, *, torch: bool = False) -> str:
    """The interpreter of an environment, which is made where it isn't there yet."""
    described = [*INSTALL, interpreter(place), repr(place), repr(place.pins), str(torch)]
    name = hashlib.sha256("\n".join(described).encode()).hexdigest()[:12]
    folder = CACHE / f"{place.name}-{name}"
    done = folder / "complete"
    python = str(folder / "bin" / "python")
    with alone(folder):
        if not done.exists():
            uv("venv", "--clear", "--python", interpreter(place), str(folder))
            uv(*INSTALL, "--python", python, *place.pinned, *place.packages)
            if torch:
                uv(*INSTALL, "--python", python, f"torch=={version('torch').split('+')[0]}")
            done.touch()
    return python


def kernels_of(python: str, folder: Path) -> str:
    """A folder for JUPYTER_PATH, by which `python3` is that interpreter's kernel."""
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    words = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    told = {"argv": words, "display_name": "Python 3", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(told))
    return str(folder)


def copy(python: str, folder: Path) -> str:
    """The interpreter of a copy of that environment, which can be changed; its files are links."""
    subprocess.run(["cp", "-al", str(Path(python).parents[1]), str(folder)], check=True)
    return str(folder / "bin" / "python")


def install(python: str, place: Place, wheel: Path) -> None:
    """As uv does it, which is quicker than pip; nothing that is pinned changes."""
    uv("pip", "install", "--python", python, *place.pinned, str(wheel))


def interpreter(place: Place) -> str:
    """The place's Python, or the one that runs this."""
    installed = Path.home().glob(f".pyenv/versions/{place.python}.*/bin/python")
    for path in (shutil.which(f"python{place.python}"), *map(str, installed)):
        # A shim may stand for an interpreter that is not there.
        if (
            path
            and subprocess.run([path, "-c", "import sqlite3"], capture_output=True).returncode == 0
        ):
            return path
    return sys.executable


def installed(python: str) -> dict[str, str]:
    """Versions by canonical name."""
    listed = json.loads(uv("pip", "list", "--python", python, "--format", "json"))
    return {canonicalize_name(each["name"]): each["version"] for each in listed}


def uv(*words: str) -> str:
    """What uv prints. Raises RuntimeError with what it says of a failure."""
    wheels = os.environ.get("PIP_FIND_LINKS")
    environment = {**os.environ, **({"UV_FIND_LINKS": wheels} if wheels else {})}
    environment.pop("VIRTUAL_ENV", None)
    ran = subprocess.run([find_uv_bin(), *words], capture_output=True, text=True, env=environment)
    if ran.returncode:
        raise RuntimeError(f"uv {' '.join(words)}\n{ran.stderr}")
    return ran.stdout
