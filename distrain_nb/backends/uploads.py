"""Data of this machine that a job elsewhere reads: uploaded to a bucket, below a name that is made
of what is in them, so that the same content is there already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.backends.folders import Folder
from distrain_nb.config import path_named
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import Finding, Severity
from distrain_nb.worker.files.sizes import readable_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

GIB = 1 << 30


@dataclass(frozen=True)
class Upload:
    """What a name of `--data` stands for here: `source` is a folder or a file, `target` the URI of
    the folder that it becomes, `file` the name of a single file in it; `files` are how many there
    are, `size` is in bytes; `passed_over` are what is in it and is no file, such as pipes."""

    name: str
    source: str
    target: str
    file: str
    files: int
    size: int
    passed_over: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Of what is in it."""
        return self.target.rpartition("/")[2]

    @property
    def uri(self) -> str:
        """Of what was named, in the bucket."""
        return f"{self.target}/{self.file}" if self.file else self.target

    def findings(self) -> Iterator[Finding]:
        """What is to go where, and what of it isn't."""
        where = f"--data {self.name}"
        if self.passed_over:
            first, *others = self.passed_over
            more = f" and {len(others):,} more" if others else ""
            message = (
                f"{first}{more} of {self.source} stays here: links that lead nowhere, pipes, "
                "sockets and devices are no files that a bucket can have"
            )
            yield Finding("remote.data-passed-over", Severity.WARNING, where, message)
        count = "1 file" if self.files == 1 else f"{self.files:,} files"
        message = (
            f"{self.source} ({count}, {readable_size(self.size)}) is uploaded to {self.target} "
            "first, as far as it is not there"
        )
        yield Finding("remote.data", Severity.INFO, where, message)


def local_path(name: str, text: str, mounted: Iterable[str]) -> Path | None:
    """Return the path on this machine that a text of `--data` means, for a job elsewhere whose
    machines have folders of their own at `mounted`; None for a URI, and for what they have
    themselves.

    Raises OptionError for what is not there, or can't be.
    """
    scheme, separator, rest = text.partition("://")
    if separator and scheme != "file":
        return None
    try:
        path = path_named(rest if separator else text)
    except OptionError as error:
        raise OptionError(f"--data {name}={error}") from None
    if path.is_absolute() and not separator:
        theirs = any(f"{path}/".startswith(item) for item in mounted)
        if theirs or not path.exists():
            return None
    if not path.exists():
        raise OptionError(f"--data {name}={text}: there is no {path} on this machine")
    return path.resolve()


def upload_of(name: str, path: Path, below: str, limit: float) -> Upload:
    """Return the upload of a folder or file to a folder `below` a URI; `limit` is how many GiB it
    may have. Raises OptionError."""
    try:
        folder = Folder.of(path)
        if not folder.files:
            raise DistrainError(f"there are no files in {path}")
        if folder.size > limit * GIB:
            more = -(-folder.size // GIB) + 1
            raise DistrainError(
                f"{readable_size(folder.size)} in {len(folder.files):,} files are to be uploaded, "
                f"more than {readable_size(round(limit * GIB))}: `%distrain config "
                f"data_limit={more}` allows it, or name a part of it"
            )
        target = f"{below}/{folder.digest()}"
    except DistrainError as error:
        raise OptionError(f"--data {name}={path}: {error}") from None
    single = path.name if path.is_file() else ""
    files = len(folder.files)
    return Upload(name, str(path), target, single, files, folder.size, folder.passed_over)
