"""AWS's own packages, each in a folder beside this environment, which could not hold them all."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.cache import alone, cache

CACHE = cache("sagemaker")

# Without what they depend on, as far as this environment has that already: their pins are old.
TOOLKIT = (
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
SDK = (
    "sagemaker-core==2.27.0",
    "sagemaker-train==1.27.0",
    "graphene==3.4.3",
    "graphql-relay==3.2.0",
    "omegaconf==2.4.0",
)


def toolkit() -> Path:
    """The toolkit that AWS's framework containers start."""
    return _installed("toolkit", TOOLKIT)


def sdk() -> Path:
    """What of SageMaker's SDK 3 a `ModelTrainer` needs."""
    return _installed("sdk", SDK)


def _installed(name: str, packages: tuple[str, ...]) -> Path:
    """A folder for PYTHONPATH; the first call installs it, with bytecode: hosts only read it."""
    described = "\n".join((sys.version, "compiled", *packages))
    key = hashlib.sha256(described.encode()).hexdigest()[:12]
    folder = CACHE / f"{name}-{key}"
    with alone(folder):
        if not folder.exists():
            draft = tempfile.mkdtemp(dir=CACHE, prefix=f".{name}-")
            uv = [
                str(Path(sys.executable).with_name("uv")),
                "pip",
                "install",
                "--quiet",
                "--compile-bytecode",
            ]
            here = ["--python", sys.executable, "--no-deps", "--target", draft]
            subprocess.run([*uv, *here, *packages], check=True)
            Path(draft).rename(folder)
    return folder
