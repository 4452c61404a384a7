"""A Jupyter server whose kernels can rehearse: with a base image, and bubblewrap to run it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from tests.browser.jupyter import serve
from tests.image.services.bases import small_base
from tests.image.services.registries import registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser.jupyter import Lab


@contextlib.contextmanager
def serve_rehearsing(folder: Path) -> Iterator[Lab]:
    """As `serve`; the base image is Debian with Python, a setting of the kernels' home."""
    os.environ["DOCKER_HOST"] = f"unix://{folder / 'nobody'}"
    (folder / "lab").mkdir(parents=True)
    with registry(folder / "registry") as host, serve(folder / "lab") as lab:
        name = f"{host}/bases/python:3.11"
        small_base().push(name)
        lab.home.mkdir()
        (lab.home / "config.yaml").write_text(f"base_image: {name}\n", encoding="utf-8")
        yield lab
