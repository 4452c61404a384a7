"""The door to a folder of this machine that a job can write: nothing else is reached by its names.

A job makes links, renames folders and plants pipes while its host looks, and objects have names
that are no paths. So every path is opened from the folder's own descriptor, beneath which the
system keeps it (`openat2`), or where it can't, without following any link.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO
from uuid import uuid4

PIECE = 1 << 20
_LONGEST_NAME = 1024  # bytes, in Cloud Storage and in S3
_DRAFT = ".being-written"
_FOLDER = os.O_CLOEXEC | os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Opens nothing yet, so that neither a pipe nor a device is touched.
_LOOK = os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_OPENAT2 = 437  # on every architecture of Linux that Python's wheels are built for
_NO_MAGIC_LINKS, _BENEATH = 0x02, 0x08
_WITHOUT_OPENAT2 = (errno.ENOSYS, errno.EPERM)  # old kernels, and filters of containers
_ATTEMPTS = 16
_OF_THE_JOB = frozenset(
    [errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.EXDEV,
     errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EBUSY,
     errno.ETXTBSY, errno.ESTALE, errno.ENODEV]
)  # fmt: skip

Version = tuple[int, int]  # when a file was written, in ns, and its size


class OutsideJobFolder(OSError):
    """A name that leads out of the folder, or that no file in it can have."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.EXDEV, "no file in the folder of the job", name)


class _How(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "mode", "resolve")]


def is_caused_by_job(error: OSError) -> bool:
    """Return whether a job can bring that about in its folder: the system's own troubles, such as a
    full disk, are none of it."""
    return error.errno in _OF_THE_JOB


@contextmanager
def ignoring_job_errors() -> Iterator[None]:
    """Go on after what a job can bring about in its folder."""
    try:
        yield
    except OSError as error:
        if not is_caused_by_job(error):
            raise


@dataclass(frozen=True)
class JobFolder:
    """The files below `root`, which a job can't replace, in the folder `below` of it, which it can.

    Names are relative to that, with `/` between folders. A link counts as the file to which it
    leads if that is beneath `root` too; else, and to a folder, as nothing. Whatever the job makes
    of the folder meanwhile, only OSError is raised: OutsideJobFolder and the system's own.
    """

    root: Path
    below: str = ""

    def make(self) -> None:
        """Have the folder, before a job has it."""
        self.root.mkdir(parents=True, exist_ok=True)
        with self._folder("", make=True):
            pass

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Return all regular files in the order of their names, without names that no object can
        have."""
        entries: list[tuple[str, os.stat_result]] = []
        for name, _ in self._walk():
            with ignoring_job_errors(), self._opened(name) as file:
                entries.append((name, os.fstat(file)))
        return iter(sorted(entries, key=lambda entry: entry[0]))

    def versions(self) -> dict[str, Version]:
        """Return when each file was written, and its size, by name."""
        return {name: (stat.st_mtime_ns, stat.st_size) for name, stat in self.files()}

    def links(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield all links, wherever they lead, with what the system says of each itself."""
        for name, entry in self._walk():
            if entry.is_symlink():
                with ignoring_job_errors():
                    yield name, entry.stat(follow_symlinks=False)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a regular file to read it."""
        with self._opened(name) as descriptor:
            place = (
                f"/proc/self/fd/{descriptor}" if hasattr(os, "O_PATH") else f"/dev/fd/{descriptor}"
            )
            with os.fdopen(os.open(place, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
                yield file

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the contents of a regular file."""
        with self.open(name) as file:
            while piece := file.read(PIECE):
                yield piece

    def write(self, name: str, data: Iterable[bytes]) -> os.stat_result:
        """Have a file with these data in one step; its folders are made. No link is followed."""
        with self._place(name, make=True) as (folder, last):
            draft = f".{uuid4().hex}{_DRAFT}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(draft, flags, 0o666, dir_fd=folder), "wb") as file:
                    for piece in data:
                        file.write(piece)
                    file.flush()
                    written = os.fstat(file.fileno())
                os.replace(draft, last, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=folder)
                raise
        return written

    def unlink(self, name: str) -> None:
        """Remove a file, or a link itself; whether it is there or not."""
        with suppress(FileNotFoundError), self._place(name) as (folder, last):
            os.unlink(last, dir_fd=folder)

    def make_pipe(self, name: str) -> None:
        """Have a named pipe."""
        with self._place(name) as (folder, last):
            os.mkfifo(last, 0o666, dir_fd=folder)

    def open_pipe(self, name: str) -> FileIO:
        """Return a named pipe to write to. Raises OSError with ENXIO while nobody reads from it."""
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._place(name) as (folder, last):
            pipe = FileIO(os.open(last, flags, dir_fd=folder), "wb")
        if not stat.S_ISFIFO(os.fstat(pipe.fileno()).st_mode):
            pipe.close()
            raise OutsideJobFolder(name)
        return pipe

    @property
    def _parts(self) -> list[str]:
        return _parts(self.below) if self.below else []

    def _walk(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield what is no folder and may have an object's name."""
        waiting = [""]
        while waiting:
            above = waiting.pop()
            with (
                ignoring_job_errors(),
                self._folder(above) as folder,
                os.scandir(folder) as entries,
            ):
                for entry in entries:
                    name = f"{above}/{entry.name}" if above else entry.name
                    if not _is_name(name) or name.endswith(_DRAFT):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(name)
                    else:
                        yield name, entry

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """Yield a descriptor of a regular file, reached by links that stay below the root."""
        parts = [*self._parts, *_parts(name)]
        with (
            _closing(os.open(self.root, _FOLDER)) as root,
            _closing(_open_beneath(root, parts)) as file,
        ):
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OutsideJobFolder(name)
            yield file

    @contextmanager
    def _place(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder that holds a file, and the file's name there."""
        *above, last = _parts(name)
        with self._folder("/".join(above), make=make) as folder:
            yield folder, last

    @contextmanager
    def _folder(self, name: str, *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of a folder that is reached without links."""
        folder = os.open(self.root, _FOLDER)
        try:
            for part in [*self._parts, *(_parts(name) if name else ())]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def _parts(name: str) -> list[str]:
    """Return the folders and the file that an object's name means.

    Raises OutsideJobFolder for an absolute one, for `.`, `..` and empty parts, for NUL, and for
    what is too long or no text.
    """
    if not _is_name(name):
        raise OutsideJobFolder(name)
    return name.split("/")


def _is_name(name: str) -> bool:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return False
    plain = "\0" not in name and {"", ".", ".."}.isdisjoint(name.split("/"))
    return plain and size <= _LONGEST_NAME


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_beneath(root: int, parts: list[str]) -> int:
    """Return a descriptor to look at; links are followed as long as they stay beneath `root`, or
    where the system can't keep them there, not at all."""
    path = "/".join(parts)
    how = _How(_LOOK, 0, _BENEATH | _NO_MAGIC_LINKS)
    for _ in range(_ATTEMPTS if sys.platform == "linux" else 0):
        library = ctypes.CDLL(None, use_errno=True)
        size = ctypes.c_size_t(ctypes.sizeof(how))
        file: int = library.syscall(_OPENAT2, root, os.fsencode(path), ctypes.byref(how), size)
        if file >= 0:
            return file
        number = ctypes.get_errno()
        if number in _WITHOUT_OPENAT2:
            break
        if number == errno.EXDEV:
            raise OutsideJobFolder(path)
        if number != errno.EAGAIN:  # which says that something was renamed on the way
            raise OSError(number, os.strerror(number), path)
    return _open_without_links(root, parts)


def _open_without_links(root: int, parts: list[str]) -> int:
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _LOOK | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)
