"""The tables of names that ranks elsewhere keep of themselves, and what of them lies here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.session import NAMES_FILE
from distrain_nb.worker.replica import shared


@dataclass(frozen=True)
class NameTables:
    """The tables of a session in `folder`, whose ranks are those of a `job`'s replicas."""

    job: Path
    folder: Path
    per_replica: int

    def bring(self, ranks: Iterable[int]) -> None:
        """Have the tables where readers of sessions look."""
        for written, target in self._files(ranks):
            with suppress(OSError):
                data = written.read_bytes()
                if not target.exists() or target.read_bytes() != data:
                    replace_file(target, data)

    def forget(self, ranks: Iterable[int]) -> None:
        """Remove those of ranks that begin anew."""
        for written, target in self._files(ranks):
            written.unlink(missing_ok=True)
            target.unlink(missing_ok=True)

    def _files(self, ranks: Iterable[int]) -> Iterator[tuple[Path, Path]]:
        """Yield the file that each rank writes, and where readers of sessions look."""
        for rank in ranks:
            replica, local = divmod(rank, self.per_replica)
            written = shared.replica_folder(self.job, replica) / NAMES_FILE.format(local)
            yield written, self.folder / NAMES_FILE.format(rank)
