"""How a program gets to the machines that run it: in an image, in an archive, or as files."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.util import cache_from_source
from pathlib import Path
from typing import IO

from distrain_nb.image.recipe import worker_files


class Delivery(str, Enum):
    """The way of a program to the machines that run it."""

    IMAGE = "image"  # in an image that is built for it
    FILES = "files"  # for any container
    ARCHIVE = "archive"  # for a container of the service, which installs the program


@dataclass(frozen=True)
class ProgramFolder:
    """A program in a folder, as builders of images take it."""

    folder: Path
    requirements: tuple[str, ...]
    required: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Copy the program into a folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield the program's files with their names below `program/`."""
        yield from _files(self.folder, "program")


def loose_files(program: ProgramFolder) -> Iterator[tuple[str, Path]]:
    """Yield the files that any container needs: the program and the worker."""
    yield from program.files()
    for name, path in files_of_worker():
        yield f"worker/{name}", path


def pack(texts: Mapping[str, str], files: Iterable[tuple[str, Path]], archive: IO[bytes]) -> None:
    """Write texts and files, each with its name in the archive, as a gzipped tar archive."""
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name, path in files:
            tar.add(path, name, recursive=False)


def files_of_worker() -> Iterator[tuple[str, Path]]:
    """Yield the worker's files with their names below a folder on PYTHONPATH."""
    for name, path in worker_files().items():
        yield from _files(path, name) if path.is_dir() else [(name, path)]


def with_bytecode(files: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """Yield files, each followed by its bytecode of this Python if there is some.

    The same Python elsewhere uses the bytecode if the file keeps its time. Another version ignores
    it.
    """
    for name, path in files:
        yield name, path
        if path.suffix == ".py":
            compiled = Path(cache_from_source(str(path)))
            if compiled.is_file():
                yield f"{name.rpartition('/')[0]}/__pycache__/{compiled.name}", compiled


def _files(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{name}/{path.relative_to(folder).as_posix()}", path
