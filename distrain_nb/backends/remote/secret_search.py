"""The search for secrets in everything that a job sends."""

from __future__ import annotations

from dataclasses import fields
from itertools import chain
from pathlib import Path

from distrain_nb.backends.job import Job
from distrain_nb.backends.local_folder import Folder
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.backends.uploads import Upload
from distrain_nb.secrets import refuse_secret_files, refuse_secret_texts, refuse_secrets


def refuse_job_secrets(job: Job[RemoteOptions], program: Path) -> None:
    """Raise CheckFailed if something that looks like a secret would leave this machine.

    *program* is the folder with the job's program.
    """
    from distrain_nb.program.progress import report

    report("looking for secrets")
    refuse_secrets(program, _readable(job.options), job.allowed_secrets)
    refuse_secret_texts(_repeated(job), job.allowed_secrets)
    for upload in job.uploads:
        report(f"looking for secrets in {upload.source}")
        refuse_secret_files(upload.name, _files(upload), job.allowed_secrets)


def _repeated(job: Job[RemoteOptions]) -> dict[str, tuple[str, ...]]:
    """Return the values that a request, an image or names of a job may repeat, by option.

    The values of `_readable` are left out.
    """
    texts: dict[str, tuple[str, ...]] = {
        "name": (job.name,),
        "experiment": (job.experiment,),
        "data": job.data,
        "require": job.program.required,
        "args": (" ".join(job.program.arguments),),
        "layout": (str(job.layout),),
    }
    for field in fields(job.options):
        value = getattr(job.options, field.name)
        if field.name not in job.options.readable() and isinstance(value, str | tuple):
            texts[field.name] = (value,) if isinstance(value, str) else tuple(map(str, value))
    return texts


def _readable(options: RemoteOptions) -> dict[str, str]:
    """Return the values that anyone with access to the job can read, by name."""
    texts = chain.from_iterable(options.readable().values())
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def _files(upload: Upload) -> dict[str, Path]:
    """Return the files of an upload by name."""
    return {file.name: file.path for file in Folder.of(Path(upload.source)).files}
