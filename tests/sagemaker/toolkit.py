"""AWS's own toolkit of its framework containers, installed beside this environment."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "sagemaker-toolkit-1"

# Without what they depend on, as far as this environment has that already: their pins are old.
PACKAGES = (
    "sagemaker-training==5.1.4",
    "sagemaker-tensorflow-training==20.5.0",
    "sagemaker-pytorch-training==3.0.0",
    "bcrypt==5.0.0",
    "gevent==26.9.0",
    "greenlet==3.5.6",
    "inotify_simple==1.2.1",
    "invoke==3.0.3",
    "paramiko==5.1.0",
    "pynacl==1.6.2",
    "retrying==1.4.2",
    "zope.event==6.2",
    "zope.interface==8.7",
)


def toolkit() -> Path:
    """The folder that it is installed in, for PYTHONPATH; the first call installs it."""
    if not CACHE.exists():
        CACHE.parent.mkdir(exist_ok=True)
        draft = tempfile.mkdtemp(dir=CACHE.parent, prefix=".toolkit-")
        uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet"]
        here = ["--python", sys.executable, "--no-deps", "--target", draft]
        subprocess.run([*uv, *here, *PACKAGES], check=True)
        Path(draft).rename(CACHE)
    return CACHE
