"""The files that an agent's plan reads: layouts of a folder that may be a stranger's, and what a
program takes along when it starts."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.layout import files

if TYPE_CHECKING:
    from distrain_nb.api import Prepared

_LARGEST_LAYOUT, _CHUNK = 1 << 20, 1 << 20


def readable_layouts() -> dict[str, str]:
    """Return the text of each saved layout by its name.

    The folder may be a stranger's, such as a clone: what is no file in it, a link or a FIFO, would
    show another file or never end, so it is left out.
    """
    texts = {}
    root = Path(files.FOLDER)
    for name in () if root.is_symlink() else files.saved():
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(root / f"{name}.yaml", flags)
        except OSError:
            continue
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST_LAYOUT:
            os.close(descriptor)
            continue
        with os.fdopen(descriptor, "rb") as file:
            texts[name] = file.read(_LARGEST_LAYOUT).decode(errors="replace")
    return texts


def digests_of(prepared: Prepared) -> dict[Path, str]:
    """Return the digests of the files that a plan reads only when it starts; those of files that
    can't be read are empty. The script's own text is in the plan."""
    digests = {}
    for path in prepared.job.program.files.values():
        if isinstance(path, Path):
            try:
                digest = hashlib.sha256()
                with path.open("rb") as file:
                    while chunk := file.read(_CHUNK):
                        digest.update(chunk)
                digests[path] = digest.hexdigest()
            except OSError:
                digests[path] = ""
    return digests
