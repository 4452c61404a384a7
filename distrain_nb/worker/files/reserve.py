"""The reserve of a folder: files that hold room on the disk for how a run ends."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.worker.files.disk import FULL, replace_file
from distrain_nb.worker.files.folder import RESERVE_FILE

# Files are deleted one by one, each for one more write.
OF_RUN, OF_STUDY = 8, 4
_BYTES = 32 << 10


def use_reserve(path: Path, data: bytes) -> None:
    """Write as `replace_file` does; on a full disk, delete the folder's reserve to make room."""
    while True:
        try:
            return replace_file(path, data)
        except OSError as error:
            if error.errno not in FULL or not _give_up_one(path.parent):
                raise


def reserve(folder: Path, files: int) -> None:
    """Write files that only take up room, as many as there is room for.

    Raises OSError where there is no room for one.
    """
    for number in range(files):
        path = folder / RESERVE_FILE.format(number)
        try:
            path.write_bytes(bytes(_BYTES))
        except OSError:
            if path.exists():
                path.unlink()
            if number:
                return
            raise


def give_up_reserve(folder: Path) -> None:
    """Delete the reserve, which is no longer needed."""
    while _give_up_one(folder):
        pass


def _give_up_one(folder: Path) -> bool:
    for path in folder.glob(RESERVE_FILE.format("*")):
        try:
            path.unlink()
        except FileNotFoundError:  # another process needed it too
            continue
        except OSError:
            return False
        return True
    return False
