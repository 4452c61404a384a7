"""Links to a job and its folders at the service, in the run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import LINKS_FILE


def write_links(links: Mapping[str, str], folder: Path) -> None:
    """Links by what they are called."""
    replace_file(folder / LINKS_FILE, json.dumps(dict(links)).encode())


def read_links(folder: Path) -> dict[str, str]:
    """Return the links that `write_links` wrote; none before it has. Raises `fields.Damaged`."""
    try:
        return fields.load_texts(folder / LINKS_FILE)
    except FileNotFoundError:
        return {}
