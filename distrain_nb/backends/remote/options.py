"""Options of jobs that run elsewhere, whatever the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.backends.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class RemoteOptions:
    """Options of any job that runs elsewhere. A backend derives its own from this, and from those
    of the parts below that it reads."""

    env: tuple[str, ...] = option("NAME=VALUE", "a variable, or NAME=secret://…", (), shown=False)

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
    """Of a service whose jobs have labels."""

    label: tuple[str, ...] = option("NAME=VALUE", "a label of the job", ())


@dataclass(frozen=True)
class ImageOptions:
    """Of a backend that builds an image for a job."""

    builder: str = option(
        "append|docker|cloudbuild", "what builds the image", "append", topic="images"
    )
    repository: str = option(
        "HOST/PATH", "container repository that the image goes to", "",
        setting="repository", topic="images",
    )  # fmt: skip
    base: str = option(
        "IMAGE", "image that the program's image is built on", "",
        setting="base_image", topic="images",
    )  # fmt: skip
    python_package: bool = option(
        "", "no image: a prebuilt container and staged code", False, topic="images"
    )


@dataclass(frozen=True)
class RehearsalOptions:
    """Of a backend that has a stand-in for its service."""

    rehearse: str | None = option("EVENT,…", "send the request to this machine", None, bare="")


@dataclass(frozen=True)
class BucketOptions:
    """Of a service whose jobs write to a bucket."""

    bucket: str = option("NAME", "bucket for what the job writes", "", setting="bucket")


@dataclass(frozen=True)
class CloudOptions(RemoteOptions, LabelOptions, ImageOptions, BucketOptions, RehearsalOptions):
    """All of these."""

    def readable(self) -> Mapping[str, tuple[str, ...]]:
        return {"env": self.env, "label": self.label}


RemoteOptionsT = TypeVar("RemoteOptionsT", bound=RemoteOptions)
