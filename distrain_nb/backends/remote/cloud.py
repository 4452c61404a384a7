"""A job on a cloud, from its code to its end: what all clouds have in common."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Generic, TypeVar

from distrain_nb.backends.remote.delivery import Delivery, ProgramFolder, loose_files
from distrain_nb.backends.remote.log_ordering import Lateness
from distrain_nb.backends.remote.submission import Spec
from distrain_nb.backends.remote.uploading import DataBucket, upload_all
from distrain_nb.errors import DistrainError
from distrain_nb.image import Recipe, build
from distrain_nb.types import JsonObject
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from distrain_nb.image import Listener

SpecT = TypeVar("SpecT", bound=Spec)

# Below the run's folder in the bucket: the program as files.
CODE = "code"


@dataclass(frozen=True)
class CloudService(ABC, Generic[SpecT]):
    """One run: `spec` is what was submitted; `endpoints` are a rehearsal's, or empty; `late` among
    them says by how many seconds lines of the log may be late."""

    spec: SpecT
    endpoints: Mapping[str, str]

    def stage(self, program: Path, tell: Listener) -> JsonObject:
        """Bring data of this machine to the bucket; then build the image, or bring the code there,
        as the run's deliveries say.

        Raises ImageError, or DistrainError for what the cloud refuses.
        """
        laid, image = ProgramFolder(program, self.spec.requirements, self.spec.required), ""
        if not self.spec.deliveries:
            raise DistrainError("another version of distrain-nb planned this run: submit it again")
        self._prepare()
        for upload in self.spec.uploads:
            upload_all(upload, self._data, tell)
        if Delivery.ARCHIVE in self.spec.deliveries:
            tell(Progress("sending the code"))
            self._send_archive(laid)
        if Delivery.FILES in self.spec.deliveries:
            self._send_files(laid, tell)
        if Delivery.IMAGE in self.spec.deliveries:
            image = self._image(laid, tell)
        return self._staged(image)

    @property
    def _folder(self) -> str:
        """The run's folder in its bucket, with a slash at its end."""
        return f"distrain/{self.spec.run}/"

    @property
    def _lateness(self) -> Lateness:
        late = self.endpoints.get("late")
        return Lateness.of_rehearsal(float(late)) if late else Lateness()

    def _send_archive(self, program: ProgramFolder) -> None:
        with tempfile.TemporaryFile() as file:
            name = self._write_archive(program, file)
            file.seek(0)
            self._put(name, file)

    def _send_files(self, program: ProgramFolder, tell: Listener) -> None:
        files = list(loose_files(program))
        for number, (name, path) in enumerate(files):
            tell(Progress("sending the code", number, len(files)))
            with path.open("rb") as file:
                self._put(f"{CODE}/{name}", file)

    def _prepare(self) -> None:
        """Make what has to be there before anything is sent."""

    @property
    @abstractmethod
    def _data(self) -> DataBucket:
        """The bucket, for data that go there."""

    @abstractmethod
    def _write_archive(self, program: ProgramFolder, file: IO[bytes]) -> str:
        """Write the archive for the cloud's own container; its name below the run's folder."""

    def _image(self, program: ProgramFolder, tell: Listener) -> str:
        """Build the image; where it is."""
        spec = self.spec
        recipe = Recipe(
            base=spec.base,
            target=f"{self._repository()}:{spec.run}",
            requirements=program.required,
            platform=spec.platform,
            device=spec.device,
            rehearsed=bool(self.endpoints),
            bare_processes=self._runs_bare_processes,
            look_inside=self._looks_inside,
            guarded=True,
        )
        return build(program, recipe, self.spec.builder, tell).uri

    @property
    def _runs_bare_processes(self) -> bool:
        """Whether an image without a base can run, as processes of this machine's Python."""
        return False

    @abstractmethod
    def _repository(self) -> str:
        """Return where images are pushed to, which is made if it can be."""

    @property
    def _looks_inside(self) -> bool:
        """Whether nothing but the base image itself tells what it has."""
        return True

    @abstractmethod
    def _staged(self, image: str) -> JsonObject:
        """Return the request, with the image that was built (empty if none was) where it
        belongs."""

    @abstractmethod
    def _put(self, name: str, file: IO[bytes]) -> None:
        """Write an object below the run's folder. Raises DistrainError."""
