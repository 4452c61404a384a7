"""Where a person finds a job and its folders: what a run's folder has of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import LINKS_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_links(links: Mapping[str, str], folder: Path) -> None:
    """Links by what they are called."""
    replace_file(folder / LINKS_FILE, json.dumps(dict(links)).encode())


def read_links(folder: Path) -> dict[str, str]:
    """What `write_links` wrote; empty for a run that has none, or not yet. Raises
    `fields.Damaged`."""
    try:
        return fields.load_texts(folder / LINKS_FILE)
    except FileNotFoundError:
        return {}
