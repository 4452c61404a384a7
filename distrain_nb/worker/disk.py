"""Writing to disk so that a reader never sees half a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step: readers see the old file or the new one."""
    draft = path.with_name("%s.%d.draft" % (path.name, os.getpid()))
    try:
        draft.write_bytes(data)
        os.replace(str(draft), str(path))
    except OSError:
        if draft.exists():
            draft.unlink()
        raise


def reserve(folder: Path, files: int, size: int) -> List[Path]:
    """Files of `size` bytes each that only take up room, as many as there is room for."""
    reserved = []
    for number in range(files):
        path = folder / ("reserve-%d" % number)
        try:
            path.write_bytes(bytes(size))
        except OSError:
            path.unlink()
            break
        reserved.append(path)
    return reserved
