"""A folder of our home that stands for a bucket, and keeps what jobs write there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.rehearsal.job_folder import JobFolder, is_of_the_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

OWN = "distrain/"  # what a run itself puts into its bucket


@dataclass(frozen=True)
class BucketFolder:
    """A folder that stands for a bucket. Objects below `distrain/` are the run's alone, and are
    neither written nor deleted here.

    So is what a link leads to: a job reads it as a part of the bucket, but it belongs elsewhere.
    """

    path: Path

    def update(
        self, written: Iterable[str], gone: Iterable[str], read: Callable[[str], Iterable[bytes]]
    ) -> Iterator[str]:
        """Have the objects that were written, with what `read` gives of each, and not those that
        are gone. Says what stays as it was."""
        folder, outside = JobFolder(self.path), []
        for name in sorted(
            name_of_object for name_of_object in written if not name_of_object.startswith(OWN)
        ):
            try:
                folder.write(name, read(name))
            except OSError as error:
                if not is_of_the_job(error):
                    raise
                outside.append(name)
        for name in sorted(
            name_of_object for name_of_object in gone if not name_of_object.startswith(OWN)
        ):
            try:
                folder.unlink(name)
            except OSError as error:
                if not is_of_the_job(error):
                    raise
                outside.append(name)
        if outside:
            more = f" and {len(outside) - 1:,} more" if len(outside) > 1 else ""
            yield (
                f"What the job wrote or deleted behind links is not kept: {outside[0]}{more} of "
                f"{self.path}."
            )
