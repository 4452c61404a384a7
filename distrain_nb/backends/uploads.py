"""Data of this machine for a job elsewhere, uploaded to a bucket.

The name in the bucket is made of the data's content, so that the same content is uploaded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.local_folder import Folder
from distrain_nb.config import path_named
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import Finding, Severity
from distrain_nb.worker.files.disk import readable_size

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.backends.job import AnyJob

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
        """Return the digest of its content."""
        return self.target.rpartition("/")[2]

    @property
    def uri(self) -> str:
        """Return its address in the bucket."""
        return f"{self.target}/{self.file}" if self.file else self.target

    def findings(self) -> Iterator[Finding]:
        """Yield which files go where, and which are left out."""
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
            f"before the run starts, {self.source} ({count}, {readable_size(self.size)}) is "
            f"uploaded to {self.target}; files that are already there are skipped"
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


def with_uploads(job: AnyJob, backend: AnyBackend) -> AnyJob:
    """Return the job with URIs for all of its data that its machines can't read where they are; its
    `uploads` are to get there yet. Raises OptionError."""
    below = backend.staging(job) if job.data else ""
    if not below:
        return job
    texts: list[str] = []
    uploads: list[Upload] = []
    for text in job.data:
        name, _, uri = text.partition("=")
        path, rest = backend.parts(uri)
        source = local_path(name, path, backend.mounted) if path else None
        if source is None:
            texts.append(text)
            continue
        upload = upload_of(name, source, below, job.config.data_limit)
        uploads.append(upload)
        texts.append(f"{name}={upload.uri}{rest}")
    return replace(job, data=tuple(texts), uploads=tuple(uploads))
