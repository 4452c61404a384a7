"""An environment with jupyter-server-documents, as SageMaker's distributions have it from 4.1 on.

Made once by uv, and kept between runs in `.cache/` of the project.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "pyproject.toml"  # whose entry points are part of the environment
# From aws/sagemaker-distribution, build_artifacts/v4/v4.4/v4.4.1.
PINNED = (
    "jupyterlab==4.5.10",
    "jupyter_server==2.20.0",
    "jupyter_server_documents==0.3.3",
    "jupyter-collaboration==4.4.2",
    "ipykernel==7.3.0",
    "ipywidgets==8.1.9",
    "plotly==6.0.1",
)


def _needed() -> tuple[str, ...]:
    """What the project itself needs, and what executes a notebook without a page."""
    own = (text for text in requires("distrain-nb") or () if "extra ==" not in text)
    return (*own, "nbconvert")


def python() -> str:
    """The interpreter of the environment, which is made where it isn't there yet."""
    packages = (*PINNED, *_needed())
    described = (sys.version, *packages, PROJECT.read_text(encoding="utf-8"))
    name = hashlib.sha256("\n".join(described).encode()).hexdigest()[:12]
    folder = ROOT / ".cache" / "server-documents" / name
    done = folder / "complete"
    found = str(folder / "bin" / "python")
    if not done.exists():
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--python", found, *packages)
        _uv("pip", "install", "--python", found, "--no-deps", "--editable", str(ROOT))
        done.touch()
    return found


def _uv(*words: str) -> None:
    ran = subprocess.run([find_uv_bin(), *words], capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"uv {' '.join(words)}\n{ran.stderr}")
