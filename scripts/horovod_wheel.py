"""Builds Horovod for the PyTorch of this environment, with Open MPI and without GPUs.

`python -m scripts.horovod_wheel` prints the wheel's path. `scripts/cache.py` says where it is kept.
The first build takes two and a half minutes of processor time, shared by two processes. It needs a
C++ compiler, CMake and Open MPI's headers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

from scripts.cache import alone, cache

VERSION = "0.28.1"
CACHE = cache("horovod")
BUILD = {
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_GLOO": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "MAKEFLAGS": "-j2",
}
# PyTorch's headers need C++ 17. For tests the build has to be quick, not its result: many files
# are compiled as one, so that those headers are read once, and nothing is optimised.
STANDARD = "set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD 17)"
OPTIMISE = 'string(REPLACE "-O2" "-O3" CMAKE_CXX_FLAGS_RELWITHDEBINFO'
QUICK = 'set(CMAKE_UNITY_BUILD ON)\nset(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O0 -DNDEBUG")\n'


def wheel() -> Path:
    """The wheel; built where there is none yet. Raises CalledProcessError where that fails."""
    folder = CACHE / f"torch-{version('torch')}-python{sys.version_info[0]}.{sys.version_info[1]}"
    with alone(folder):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as draft:
                _build(_source(Path(draft)), Path(draft, "wheel"))
                Path(draft, "wheel").rename(folder)
    return next(folder.glob("*.whl"))


def _source(draft: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    options = ["--no-build-isolation", "--no-binary", "horovod", "--dest", str(draft)]
    subprocess.run([*pip, *options, f"horovod=={VERSION}"], check=True, stdout=sys.stderr)
    with tarfile.open(draft / f"horovod-{VERSION}.tar.gz") as archive:
        archive.extractall(draft, filter="data")
    source = draft / f"horovod-{VERSION}"
    for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
        text = (source / name).read_text().replace(*STANDARD)
        (source / name).write_text(text.replace(OPTIMISE, QUICK + OPTIMISE))
    return source


def _build(source: Path, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    command = [*pip, "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, **BUILD})


if __name__ == "__main__":
    print(wheel())
