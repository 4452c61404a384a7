"""Files that a job leaves in its output folder, event files and results, fetched into the run's
folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.service import OutputFolder, Stored
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.disk import replace
from distrain_nb.worker.files.folder import EVENTS_FOLDER, RESULTS_FOLDER
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from distrain_nb.image import Listener

PIECE = 8 << 20

_DRAFT = ".being-fetched"


class OutsideRunFolder(DistrainError):
    """A service names an object that would be written outside of the run's folder."""


def events(output: OutputFolder, folder: Path) -> None:
    """Fetch the bytes by which event files have grown, not whole files.

    Raises OutsideRunFolder for refused objects, once everything else has been fetched.
    """
    files = output.objects(f"{EVENTS_FOLDER}/")
    for stored, path in _allowed(files, folder, EVENTS_FOLDER):
        have = path.stat().st_size if path.exists() else 0
        if have > stored.size:  # written anew
            path.unlink()
            have = 0
        if have < stored.size:
            path.parent.mkdir(parents=True, exist_ok=True)
            for _ in _pieces(output, stored, path, have):
                pass


def results(output: OutputFolder, folder: Path, tell: Listener) -> None:
    """Fetch what `--result` names.

    A file gets its name when it is whole and on disk, because the journal then records that nothing
    is missing. Raises OutsideRunFolder for refused objects, once everything else has been fetched.
    """
    files = output.objects(f"{RESULTS_FOLDER}/")
    total, done = sum(stored.size for stored in files), 0
    for stored, path in _allowed(files, folder, RESULTS_FOLDER):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}{_DRAFT}")
        draft.write_bytes(b"")
        for more in _pieces(output, stored, draft, 0):
            done += more
            tell(Progress("fetching results", done, total))
        replace(draft, path)


def _pieces(output: OutputFolder, stored: Stored, path: Path, have: int) -> Iterable[int]:
    with path.open("ab") as file:
        while have < stored.size:
            piece = output.read(stored.name, have, min(stored.size, have + PIECE))
            if not piece:
                raise DistrainError(f"{stored.name} ends after {have} of {stored.size} bytes")
            file.write(piece)
            have += len(piece)
            yield len(piece)


def _allowed(objects: Sequence[Stored], folder: Path, below: str) -> Iterator[tuple[Stored, Path]]:
    """Yield each object with the path where it belongs.

    The service chooses the names, so an object outside of the folder is refused, after all others.
    """
    refused = []
    for stored in objects:
        parts = [part for part in stored.name.split("/") if part not in ("", ".")]
        is_below = parts[:1] == [below] and len(parts) > 1 and ".." not in parts
        if is_below and not stored.name.startswith("/"):
            yield stored, folder / stored.name
        else:
            refused.append(folder / stored.name)
    if refused:
        raise OutsideRunFolder(
            f"an object is called {str(refused[0])!r}, which is outside of {folder}"
        )
