"""Environments as other people have them: made once by uv, kept in `.cache/` of the project."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path

from uv import find_uv_bin

from scripts.cache import alone

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "pyproject.toml"  # whose entry points are part of the environment
# Else each server and kernel compiles what it imports, where Python is told to write no bytecode.
INSTALL = ("pip", "install", "--compile-bytecode")


@dataclass(frozen=True)
class Environment:
    """This checkout, what it needs, and these packages besides."""

    name: str
    packages: tuple[str, ...]

    def python(self) -> str:
        """Its interpreter, once it is there."""
        packages = (*self.packages, *_needed())
        described = (sys.version, *INSTALL, *packages, PROJECT.read_text(encoding="utf-8"))
        name = hashlib.sha256("\n".join(described).encode()).hexdigest()[:12]
        folder = ROOT / ".cache" / self.name / name
        done, found = folder / "complete", str(folder / "bin" / "python")
        with alone(folder):
            if not done.exists():
                _uv("venv", "--clear", "--python", sys.executable, str(folder))
                _uv(*INSTALL, "--python", found, *packages)
                _uv("pip", "install", "--python", found, "--no-deps", "--editable", str(ROOT))
                done.touch()
        return found


# From aws/sagemaker-distribution, build_artifacts/v4/v4.4/v4.4.1: it has jupyter-server-documents.
SAGEMAKER_4_4 = Environment(
    "sagemaker-4.4",
    (
        "jupyterlab==4.5.10",
        "jupyter_server==2.20.0",
        "jupyter_server_documents==0.3.3",
        "jupyter-collaboration==4.4.2",
        "ipykernel==7.3.0",
        "ipywidgets==8.1.9",
        "plotly==6.0.1",
        "nbconvert",  # executes a notebook without a page
    ),
)
# What was new in the summer of 2024.
JUPYTERLAB_4_2 = Environment(
    "jupyterlab-4.2",
    (
        "jupyterlab==4.2.7",
        "jupyter_server==2.20.0",  # older ones announce port 0
        "ipykernel==6.29.5",
        "ipython==8.26.0",
        "ipywidgets==8.1.5",
    ),
)


def _needed() -> tuple[str, ...]:
    """What the project itself needs."""
    return tuple(text for text in requires("distrain-nb") or () if "extra ==" not in text)


def _uv(*words: str) -> None:
    ran = subprocess.run([find_uv_bin(), *words], capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"uv {' '.join(words)}\n{ran.stderr}")
