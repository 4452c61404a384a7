"""A folder of our home that stands for a bucket, and keeps what jobs write there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from distrain_nb.rehearsal.job_folder import JobFolder, is_caused_by_job

_OF_THE_RUN = "distrain/"  # what a run itself puts into its bucket


@dataclass
class BucketFolder:
    """`versions` are those of the bucket's objects that the folder has, by name.

    Objects below `distrain/` are the run's alone, and are neither written nor deleted here. So is
    what a link leads to: a job reads it as a part of the bucket, but it belongs elsewhere.
    """

    path: Path
    versions: Mapping[str, Hashable]
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def update(
        self,
        versions: Callable[[], Mapping[str, Hashable]],
        read: Callable[[str], Iterable[bytes]],
    ) -> Iterator[str]:
        """Have the folder as the bucket is now; `read` gives an object's data. Says what stays as
        it was."""
        with self._busy:
            current, folder, outside = versions(), JobFolder(self.path), []
            changed = {name for name, _ in current.items() ^ self.versions.items()}
            for name in sorted(name for name in changed if not name.startswith(_OF_THE_RUN)):
                try:
                    if name in current:
                        folder.write(name, read(name))
                    else:
                        folder.unlink(name)
                except OSError as error:
                    if not is_caused_by_job(error):
                        raise
                    outside.append(name)
            self.versions = current
        if outside:
            more = f" and {len(outside) - 1:,} more" if len(outside) > 1 else ""
            yield (
                f"What the job wrote or deleted behind links is not kept: {outside[0]}{more} of "
                f"{self.path}."
            )
