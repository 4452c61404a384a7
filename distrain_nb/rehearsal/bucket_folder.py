"""A folder of our home that stands for a bucket, and keeps what jobs write there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

OWN = "distrain/"  # what a run itself puts into its bucket


@dataclass(frozen=True)
class BucketFolder:
    """What lies below `distrain/` is the run's alone, and is neither written nor deleted here.

    So is what a link leads to: a job reads it as a part of the bucket, but it belongs elsewhere.
    """

    path: Path

    def update(
        self, written: Iterable[str], gone: Iterable[str], bring: Callable[[str, Path], object]
    ) -> Iterator[str]:
        """Have the objects that were written, each by `bring(name, path)`, and not those that are
        gone. Says what stays as it was."""
        outside = []
        for name in sorted(each for each in written if not each.startswith(OWN)):
            if not self._has(name):
                outside.append(name)
                continue
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{uuid4().hex}")
            try:
                bring(name, draft)
                draft.replace(target)
            finally:
                draft.unlink(missing_ok=True)
        for name in sorted(each for each in gone if not each.startswith(OWN)):
            if self._has(name):
                (self.path / name).unlink(missing_ok=True)
            else:
                outside.append(name)
        if outside:
            more = f" and {len(outside) - 1:,} more" if len(outside) > 1 else ""
            yield (
                f"What the job wrote or deleted behind links is not kept: {outside[0]}{more} of "
                f"{self.path}."
            )

    def _has(self, name: str) -> bool:
        """Whether an object's file is in the folder itself, wherever links and `..` lead."""
        root = self.path.parent.resolve() / self.path.name
        with suppress(OSError, RuntimeError):  # links in a circle
            parent = (self.path / name).parent.resolve()
            return Path(name).name not in ("", "..") and (parent == root or root in parent.parents)
        return False
