"""A container with TensorFlow, PyTorch, Horovod and Open MPI, as framework containers have them."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

from scripts.horovod_wheel import wheel
from tests.image.services.bases import BaseImage, Blob, kept_layer, small_base
from tests.vertex.packages import WHERE, base_with

# Of Debian's alternatives, which are set up by a script that is not run.
MPIRUN = "usr/bin/mpirun"


def container() -> BaseImage:
    """Layers of this environment's packages over Debian with Open MPI."""
    frameworks = (("torch", "numpy"), ("tensorflow-cpu",))
    needed = ("cloudpickle", "psutil", "PyYAML", "packaging", "cffi")
    packages = (base_with(*names).layers[-1] for names in (*frameworks, needed))
    return BaseImage((*small_base("openmpi-bin").layers, *packages, _horovod(wheel())))


def _horovod(wheel: Path) -> Blob:
    def pack(draft: Path) -> None:
        with (
            gzip.GzipFile(draft, "wb", 0, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
            zipfile.ZipFile(wheel) as files,
        ):
            link = tarfile.TarInfo(MPIRUN)
            link.type, link.linkname = tarfile.SYMTYPE, "mpirun.openmpi"
            tar.addfile(link)
            for name in files.namelist():
                entry, data = tarfile.TarInfo(f"{WHERE}/{name}"), files.read(name)
                entry.size, entry.mode = len(data), 0o755
                tar.addfile(entry, BytesIO(data))

    return kept_layer(f"horovod-{wheel.parent.name}", pack)
