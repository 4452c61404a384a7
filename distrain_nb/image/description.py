"""The description of an image in its registry.

The answer has a limit of seconds: the user waits for it.
"""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

import httpx

from distrain_nb.errors import DistrainError
from distrain_nb.image.base import read_base
from distrain_nb.image.installed import labelled_packages
from distrain_nb.image.registry.client import Registry
from distrain_nb.image.registry.reference import Reference

WITHIN_S = 4.0


@dataclass(frozen=True)
class ImageDescription:
    """The configuration of an image.

    `packages` are those that a build here has labelled, by name.
    """

    environment: Mapping[str, str]
    labels: Mapping[str, str]
    packages: Mapping[str, str]


def describe(image: str, platform: str, within: float = WITHIN_S) -> ImageDescription | None:
    """Return the description of an image for *platform*; None without an answer in time.

    The registry may be out of reach, want a login that is missing, or lack the image.
    """
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
