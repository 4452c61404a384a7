"""How a program gets to where it runs: in an image, as a source distribution, or as files."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.delivery import Laid, files_of_worker, unpinned
from distrain_nb.backends.vertex.containers import IMPORTED_AS
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import prebuilt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE_NAME = "distrain_program"
PACKAGE_FILE = f"{PACKAGE_NAME}-0.tar.gz"

_TASK = """\
import os
import runpy
from pathlib import Path

os.environ["DISTRAIN_PROGRAM"] = str(Path(__file__).parent / "program")
runpy.run_module("distrain_nb.worker", run_name="__main__")
"""
_SETUP = """\
from pathlib import Path

from setuptools import find_packages, setup

PROGRAM = [str(p.relative_to("{name}")) for p in Path("{name}/program").rglob("*") if p.is_file()]

setup(
    name="{name}",
    version="0",
    packages=find_packages(exclude=["{name}.program*"]),
    package_data={{"{name}": PROGRAM}},
    install_requires={requirements!r},
)
"""


def source_distribution(program: Laid, base: str) -> bytes:
    """A package whose module `distrain_program.task` runs the program; `base` is its container."""
    requirements = list(needed(program.requirements, base))
    texts = {
        "setup.py": _SETUP.format(name=PACKAGE_NAME, requirements=requirements),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {PACKAGE_NAME}\nVersion: 0\n",
        f"{PACKAGE_NAME}/__init__.py": "",
        f"{PACKAGE_NAME}/task.py": _TASK,
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(f"{PACKAGE_NAME}-0/{name}")
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name, path in program.files():
            tar.add(path, f"{PACKAGE_NAME}-0/{PACKAGE_NAME}/{name}", recursive=False)
        for name, path in files_of_worker():
            tar.add(path, f"{PACKAGE_NAME}-0/{name}", recursive=False)
    return packed.getvalue()


def needed(requirements: Iterable[str], base: str) -> Iterator[str]:
    """What a prebuilt container is to install: its own framework, and the versions of all that it
    has, stay; a notebook's exact versions may not be there for its Python."""
    row = prebuilt(current(), base)
    return unpinned(requirements, IMPORTED_AS.get(row.framework, ())[:1] if row else ())
