"""Data of this machine, named by a job that runs elsewhere, as data in its bucket."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.backends.uploads import local_path, upload_of

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend, AnyJob
    from distrain_nb.backends.uploads import Upload


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
