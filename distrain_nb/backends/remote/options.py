"""Options of jobs that run elsewhere, whatever the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from distrain_nb.backends.options import option


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
