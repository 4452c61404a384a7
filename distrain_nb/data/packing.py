"""`pack`, here: its progress is reported, its errors raised, as everywhere in this package."""

from __future__ import annotations

from distrain_nb.errors import OptionError, PackingError, warn
from distrain_nb.program.progress import report
from distrain_nb.worker.packing import packing
from distrain_nb.worker.packing.errors import PackingFailed, PackingRefused
from distrain_nb.worker.packing.packing import SIZE, Packed

__all__ = ["SIZE", "Packed", "pack", "packed"]


def pack(source: str, target: str, size: float = SIZE, shuffle: int | None = None) -> Packed:
    """Pack the samples of a source into tar shards at a target, and verify them.

    `source` is a folder, a bucket's prefix (`gs://`, `s3://`) or a list of files; `target` is a
    folder or a prefix. A shard has `size` bytes at most, unless one sample has more. `shuffle` is a
    seed; without it samples are in the order of their names. What a killed packing had finished
    stays. Raises OptionError for what can't be read or written, PackingError where files
    are damaged or change; warns of files that are passed over, and of folders that are no classes.
    """
    shards = packed(source, target, size, shuffle)
    for note in shards.notes:
        warn(note)
    return shards


def packed(source: str, target: str, size: float, shuffle: int | None) -> Packed:
    """Pack as `pack` does, for those who show the notes themselves."""
    try:
        return packing.pack(source, target, size, shuffle, report)
    except (PackingRefused, ImportError) as error:
        raise OptionError(str(error)) from None
    except PackingFailed as error:
        raise PackingError(str(error)) from None
    except OSError as error:
        raise PackingError(f"{error.filename or target}: {error.strerror or error}") from None
