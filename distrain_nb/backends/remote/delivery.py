"""How a program gets to where it runs: in an image, in an archive, or as files."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.util import cache_from_source
from pathlib import Path
from typing import IO, Protocol

from distrain_nb.image.image import worker_files
from distrain_nb.program.requirements import PACKAGES


class Delivery(str, Enum):
    """How a program gets to the machines that run it."""

    IMAGE = "image"  # one that is built for it
    FILES = "files"  # for a container that knows nothing of us
    ARCHIVE = "archive"  # for a container of the cloud's own, which installs it


class PackageNeeds(Protocol):
    """What needs packages: `requirements` are `name==version` of what the notebook has of them,
    `required` those that somebody asked for."""

    @property
    def requirements(self) -> tuple[str, ...]: ...

    @property
    def required(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class ProgramFolder:
    """A program that lies in a folder, as builders of images take it."""

    folder: Path
    requirements: tuple[str, ...]
    required: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Copy it."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield its files, each with its name below `program/`."""
        yield from _files(self.folder, "program")


def loose_files(program: ProgramFolder) -> Iterator[tuple[str, Path]]:
    """Yield the files that any container needs: the program and the worker."""
    yield from program.files()
    for name, path in files_of_worker():
        yield f"worker/{name}", path


def pack(texts: Mapping[str, str], files: Iterable[tuple[str, Path]], archive: IO[bytes]) -> None:
    """Write texts and files, each by its name there, as a gzipped tar archive."""
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name, path in files:
            tar.add(path, name, recursive=False)


def packages_to_install(program: PackageNeeds, there: Sequence[str]) -> Iterator[str]:
    """Yield the packages that a container of the cloud's own installs: those asked for as they
    are, and all others that are imported without the notebook's exact versions, which its Python
    may not have.

    What is `there`, be it built for other hardware, stays as it is unless it was asked for.
    """
    from packaging.requirements import Requirement

    from distrain_nb.cluster.packages import builds
    from distrain_nb.image.requirement_names import requirement_name

    taken = {*there, *map(requirement_name, program.required)}
    for line in program.requirements:
        if taken.isdisjoint(builds(requirement_name(line))):
            requirement = Requirement(line)
            # `==2.18.*` is a release that the user asked for, not the notebook's version.
            pinned = [item.operator for item in requirement.specifier] == ["=="] and not str(
                requirement.specifier
            ).endswith(".*")
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            yield f"{requirement.name}{extras}" if pinned else line
    yield from program.required


def packages_in_image(program: PackageNeeds, framework: str | None) -> Iterator[str]:
    """Yield the packages that are added to an image with a framework, and which it keeps: a base
    keeps its own, if nobody asked for another one."""
    from distrain_nb.cluster.packages import builds
    from distrain_nb.image.requirement_names import requirement_name

    package = PACKAGES.get(framework or "", "")
    required = {build for line in program.required for build in builds(requirement_name(line))}
    for line in program.requirements:
        names = builds(requirement_name(line))
        if not required.isdisjoint(names):
            continue
        yield f"{package}: the image's own" if package in names else line
    yield from program.required


def files_of_worker() -> Iterator[tuple[str, Path]]:
    """Yield the files that start the ranks, by their names below a folder on PYTHONPATH."""
    for name, path in worker_files().items():
        yield from _files(path, name) if path.is_dir() else [(name, path)]


def with_bytecode(files: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """Yield the files, each with what this Python has compiled of it: the same Python elsewhere
    need not compile it anew if the file keeps its time; another passes it over."""
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
