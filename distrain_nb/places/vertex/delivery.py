"""How a program gets to Vertex AI's prebuilt containers: the archive of a Python package."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from distrain_nb.backends.remote.delivery import files_of_worker, pack
from distrain_nb.places.vertex.containers import needed

if TYPE_CHECKING:
    from distrain_nb.backends.remote.delivery import ProgramFolder

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


def write_archive(program: ProgramFolder, base: str, file: IO[bytes]) -> None:
    """Write a source distribution whose module `distrain_program.task` runs the program; `base` is
    the container that installs it."""
    requirements = list(needed(program, base))
    texts = {
        "setup.py": _SETUP.format(name=PACKAGE_NAME, requirements=requirements),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {PACKAGE_NAME}\nVersion: 0\n",
        f"{PACKAGE_NAME}/__init__.py": "",
        f"{PACKAGE_NAME}/task.py": _TASK,
    }
    ours = ((f"{PACKAGE_NAME}/{name}", path) for name, path in program.files())
    top = f"{PACKAGE_NAME}-0"
    pack(
        {f"{top}/{name}": text for name, text in texts.items()},
        ((f"{top}/{name}", path) for name, path in (*ours, *files_of_worker())),
        file,
    )
