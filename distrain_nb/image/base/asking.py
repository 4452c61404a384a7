"""What a registry says of an image, asked for a moment: nobody is to wait for it."""

from __future__ import annotations

import queue
import subprocess
import threading
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from distrain_nb.errors import DistrainError
from distrain_nb.image.base.base import read_base
from distrain_nb.image.base.installed import labelled_packages
from distrain_nb.image.registry.client import Registry
from distrain_nb.image.registry.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

WITHIN_S = 4.0


@dataclass(frozen=True)
class ImageDescription:
    """What an image's configuration has: `packages` by name, as a label of ours lists them."""

    environment: Mapping[str, str]
    labels: Mapping[str, str]
    packages: Mapping[str, str]


def describe(image: str, platform: str, within: float = WITHIN_S) -> ImageDescription | None:
    """Return what the registry says of an image for `platform`; None if it doesn't say it within
    so many seconds: it is out of reach, wants a login that there is not, or has no such image."""
    answers: queue.SimpleQueue[ImageDescription | None] = queue.SimpleQueue()

    # In a thread, as nothing else ends a look-up of a host's name, or a helper for logins.
    def ask() -> None:
        answers.put(_described(image, platform, within))

    threading.Thread(target=ask, name=f"asking for {image}", daemon=True).start()
    try:
        return answers.get(timeout=within)
    except queue.Empty:
        return None


def _described(image: str, platform: str, within: float) -> ImageDescription | None:
    try:
        where = Reference.parse(image)
        scopes = [f"repository:{where.repository}:pull"]
        with closing(Registry(where.registry, scopes, within, attempts=1)) as registry:
            config = read_base(registry, where, platform).config
        return ImageDescription(config.environment, config.labels, labelled_packages(config.labels))
    except (DistrainError, OSError, httpx.HTTPError, subprocess.SubprocessError):
        return None
