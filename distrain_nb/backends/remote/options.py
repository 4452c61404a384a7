"""Options of jobs that run elsewhere, whatever the service.

The values of `--env`: neither shown nor stored for longer than it takes to submit the job.

A request is shown and kept with `HIDDEN` in their place. The values themselves are in a file of
the run's folder that only its owner may read, until the service has the job.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.backends.options import option
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.secrets import HIDDEN, STORED
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import VARIABLES_FILE
from distrain_nb.worker.replica.secret_stores import SECRETS_VARIABLE

if TYPE_CHECKING:
    from distrain_nb.backends.job import AnyJob


@dataclass(frozen=True)
class RemoteOptions:
    """Options of any job that runs elsewhere. A backend derives its own from this, and from those
    of the parts below that it reads."""

    env: tuple[str, ...] = option(
        "NAME=VALUE", "environment variable of the job, or NAME=secret://…", (), shown=False
    )

    @property
    def rehearsal(self) -> str | None:
        """The text after `--rehearse`; None for the service itself."""
        text: str | None = getattr(self, "rehearse", None)
        return text

    @property
    def rehearsed(self) -> bool:
        """Whether the job goes to a stand-in of the service on this machine."""
        return self.rehearsal is not None

    def readable(self) -> Mapping[str, tuple[str, ...]]:
        """Return texts NAME=VALUE that whoever may look at the job can read, by option."""
        return {"env": self.env}


@dataclass(frozen=True)
class LabelOptions:
    """Options of a service whose jobs have labels."""

    label: tuple[str, ...] = option("NAME=VALUE", "label of the job", ())


@dataclass(frozen=True)
class ImageOptions:
    """Options of a backend that builds an image for a job."""

    builder: str = option(
        "append|docker|cloudbuild", "how to build the image", "append", topic="images"
    )
    repository: str = option(
        "HOST/PATH", "container repository to push the image to", "",
        setting="repository", topic="images",
    )  # fmt: skip
    base: str = option(
        "IMAGE", "image to build the program's image on", "",
        setting="base_image", topic="images",
    )  # fmt: skip
    python_package: bool = option(
        "", "send code to a prebuilt container; build no image", False, topic="images"
    )


@dataclass(frozen=True)
class RehearsalOptions:
    """Options of a backend that has a stand-in for its service."""

    rehearse: str | None = option(
        "FAULT,…", "rehearse the job here, with these faults", None, bare=""
    )


@dataclass(frozen=True)
class BucketOptions:
    """Options of a service whose jobs write to a bucket."""

    bucket: str = option("NAME", "bucket for the job's files", "", setting="bucket")


@dataclass(frozen=True)
class CloudOptions(RemoteOptions, LabelOptions, ImageOptions, BucketOptions, RehearsalOptions):
    """All of these."""

    def readable(self) -> Mapping[str, tuple[str, ...]]:
        return {"env": self.env, "label": self.label}


RemoteOptionsT = TypeVar("RemoteOptionsT", bound=RemoteOptions)


VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOTE = f"The values of --env are not shown ({HIDDEN})."


def variables_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the variables of `--env`, NAME=VALUE each. Raises OptionError."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not VARIABLE.fullmatch(name):
            raise OptionError(f"invalid --env {name!r}: expected NAME=VALUE")
        values[name] = value
    return values


def plain_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those that hold their values themselves."""
    return {name: value for name, value in variables.items() if not value.startswith(STORED)}


def secrets(variables: Mapping[str, str], resolve: Callable[[str, str], str]) -> dict[str, str]:
    """Return the variables that name a secret, as the worker reads them.

    `resolve` gives a secret's full name by the variable and what stands after `secret://`.
    """
    named = {
        name: resolve(name, value.removeprefix(STORED))
        for name, value in variables.items()
        if value.startswith(STORED)
    }
    return {SECRETS_VARIABLE: json.dumps(named)} if named else {}


def no_secret(name: str, text: str, form: str) -> OptionError:
    """Return the error for a secret's name that is not valid."""
    return OptionError(f"invalid --env '{name}={STORED}{text}': expected {STORED}{form}")


def restored_variables(hidden: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return variables with their values again. Raises DistrainError if one is not there any
    more."""
    lost = [name for name, value in hidden.items() if value == HIDDEN and name not in values]
    if lost:
        raise DistrainError(f"the values of --env are gone ({', '.join(lost)}): submit again")
    return {name: values[name] if value == HIDDEN else value for name, value in hidden.items()}


def store_variables(values: Mapping[str, str], folder: Path) -> None:
    """Write the values down for the process that submits the job."""
    if values:
        mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(folder / VARIABLES_FILE, mode, 0o600), "w") as file:
            json.dump(dict(values), file)


def stored_variables(folder: Path) -> dict[str, str]:
    """Return the kept values; none once they have been forgotten."""
    try:
        return fields.load_texts(folder / VARIABLES_FILE)
    except FileNotFoundError:
        return {}


def delete_variables(folder: Path) -> None:
    """Delete the kept values: the service has the job, or never will."""
    (folder / VARIABLES_FILE).unlink(missing_ok=True)


# Names stand in labels, tags and names of jobs, of up to 63 characters in lower case; a dash and
# the eight digits that make a run's name its own come behind.
_LONGEST = 40


def short_name(name: str) -> str:
    """Return the name that a job was given, as labels, images and jobs may have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST].strip("-") or "run"


def run_name(job: AnyJob) -> str:
    """Return a name that no other job's run has."""
    return f"{short_name(job.name)}-{job.nonce}"
