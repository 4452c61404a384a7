"""Options of jobs that run elsewhere, whatever the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.backends.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class RemoteOptions:
    """What a service's backend declares more is added in a dataclass derived from this one."""

    rehearse: str | None = option("EVENT,…", "send the request to this machine", None, bare="")
    builder: str = option(
        "append|docker|cloudbuild", "what builds the image", "append", topic="images"
    )
    bucket: str = option("NAME", "bucket for what the job writes", "", setting="bucket")
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
    label: tuple[str, ...] = option("NAME=VALUE", "a label of the job", ())
    env: tuple[str, ...] = option("NAME=VALUE", "a variable, or NAME=secret://…", (), shown=False)

    @property
    def rehearsed(self) -> bool:
        """Whether the job goes to a stand-in of the service on this machine."""
        return self.rehearse is not None

    def readable(self) -> Mapping[str, tuple[str, ...]]:
        """Texts NAME=VALUE that whoever may look at the job can read, by option."""
        return {"env": self.env, "label": self.label}


RemoteOptionsT = TypeVar("RemoteOptionsT", bound=RemoteOptions)
