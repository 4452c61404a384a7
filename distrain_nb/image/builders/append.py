"""The default builder: layers on top of a base, with nothing but HTTP to the registries."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import distrain_nb
from distrain_nb.errors import ImageError
from distrain_nb.image.base import BASE_LABEL, Base, read_chosen_base
from distrain_nb.image.builders.dependencies import Packages, packages_for
from distrain_nb.image.image import Image, ImageLayer
from distrain_nb.image.layers import Layer, write_layer
from distrain_nb.image.progress import Listener, Meter, announce
from distrain_nb.image.recipe import (
    ENTRYPOINT,
    PROGRAM,
    WORKER,
    ProgramFiles,
    Recipe,
    environment_for,
    worker_files,
)
from distrain_nb.image.registry.client import Registry, RegistryBlob, open_registries
from distrain_nb.image.registry.image_config import ContainerSettings
from distrain_nb.image.registry.manifest import Descriptor, Manifest, digest_of
from distrain_nb.image.registry.reference import Reference
from distrain_nb.scratch import Scratch
from distrain_nb.secrets import refuse_secrets

_AT_ONCE = 6
_VERSION_LABEL = "distrain-nb.version"


def build(program: ProgramFiles, recipe: Recipe, progress: Listener | None = None) -> Image:
    """Put the worker, the packages and the program on top of the base, and push the image.

    Raises CheckFailed for files that look like secrets, and ImageError (with RegistryError,
    DigestMismatch and AuthenticationError) for everything that stops an image.
    """
    began = time.monotonic()
    if recipe.run:
        raise ImageError("The append builder can't run commands: choose --builder docker.")
    where, target = Reference.parse(recipe.base), _target(recipe.target)
    with ExitStack() as stack:
        source, sink = stack.enter_context(open_registries(where, target))
        folder = stack.enter_context(Scratch("image"))
        announce(progress, "reading the base")
        base = read_chosen_base(
            source, where, recipe.platform, bare_processes=recipe.bare_processes
        )
        announce(progress, "packing")
        packages = packages_for(program.requirements, recipe, base, source, progress)
        layers = _layers(program, recipe, base, packages, folder)
        pushed = _Push(base, source, sink, target, Meter(progress, "sending"))
        return pushed.image(recipe, layers, packages, began)


def _target(name: str) -> Reference:
    target = Reference.parse(name)
    if target.digest:
        raise ImageError(f"invalid target {name!r}: expected no digest, and a tag or none")
    return target


def _layers(
    program: ProgramFiles, recipe: Recipe, base: Base, packages: Packages, folder: Path
) -> dict[str, Layer]:
    """Return the new layers by purpose, the one that changes least often first."""
    written = folder / "program"
    written.mkdir()
    program.write(written)
    if not recipe.guarded:
        refuse_secrets(written, recipe.environment, recipe.allowed_secrets)
    layers = {"worker": worker_layer(folder / "worker.tar.gz")}
    if packages.layer is not None:
        layers["packages"] = packages.layer
    content: dict[str, Path | bytes] = {PROGRAM: written}
    if _VERSION_LABEL in base.config.labels:
        content[f"{PROGRAM}/.wh..wh..opq"] = b""  # hides the program that the base brings along
    layers["program"] = write_layer(folder / "program.tar.gz", content)
    return layers


def worker_layer(path: Path) -> Layer:
    """Return the part of this package that starts ranks, as a layer in the file `path`."""
    return write_layer(path, {f"{WORKER}/{name}": file for name, file in worker_files().items()})


@dataclass(frozen=True)
class _Bytes:
    """A small blob in memory."""

    data: bytes

    @property
    def digest(self) -> str:
        return digest_of(self.data)

    @property
    def size(self) -> int:
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        yield self.data


@dataclass(frozen=True)
class _Push:
    """One image on its way to its registry."""

    base: Base
    source: Registry
    sink: Registry
    target: Reference
    meter: Meter

    def image(
        self,
        recipe: Recipe,
        layers: dict[str, Layer],
        packages: Packages,
        began: float,
    ) -> Image:
        """Send what the repository lacks, the manifest last, and say what was done."""
        settings = self._settings(recipe, packages)
        config = self.base.config.with_layers(layers, settings).to_bytes()
        manifest = self.base.manifest.with_layers(config, list(layers.values()))
        placed = self._place_all(layers, config)
        document = manifest.to_bytes()
        digest = self.sink.put_manifest(self.target, document, manifest.family.manifest)
        self.meter.expect(len(document))
        self.meter.sent(len(document))
        return Image(
            reference=self.target.at(digest),
            base=self.base.reference,
            platform=self.base.config.platform,
            layers=_described(manifest, list(layers), placed),
            entrypoint=settings.entrypoint,
            environment=settings.environment,
            labels=settings.labels,
            notes=packages.notes,
            sent=self.meter.done,
            seconds=time.monotonic() - began,
        )

    def _settings(self, recipe: Recipe, packages: Packages) -> ContainerSettings:
        labels = {
            **recipe.labels,
            _VERSION_LABEL: distrain_nb.__version__,
            BASE_LABEL: str(replace(self.base.reference, digest=None)),
            "org.opencontainers.image.base.digest": self.base.reference.digest or "",
            **packages.labels(),
        }
        environment = environment_for(recipe, self.base.config.environment)
        return ContainerSettings(ENTRYPOINT, environment, labels, PROGRAM)

    def _place_all(self, layers: dict[str, Layer], config: bytes) -> dict[str, str]:
        """Place all blobs; return how each one, by digest, came to the repository."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            blobs = {b.digest: b for b in self.base.manifest.layers}
            placing = {digest: pool.submit(self._place, blob) for digest, blob in blobs.items()}
            new: tuple[Layer | _Bytes, ...] = (*layers.values(), _Bytes(config))
            for ours in new:
                placing[ours.digest] = pool.submit(self._send, ours)
            try:
                done, _ = wait(placing.values(), return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:  # an interrupt too
                self.meter.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            return {digest: future.result() for digest, future in placing.items()}

    def _send(self, blob: Layer | _Bytes) -> str:
        if self.sink.has_blob(self.target.repository, blob.digest):
            return "already there"
        self.sink.upload(self.target.repository, blob, self.meter)
        return "sent"

    def _place(self, blob: Descriptor) -> str:
        """See that a blob of the base is in the target's repository."""
        home, repository = self.base.reference, self.target.repository
        if blob.foreign:
            return "left outside"
        if home.name == self.target.name:
            return "left in place"
        if self.sink.has_blob(repository, blob.digest):
            return "already there"
        begun = None
        if home.registry == self.target.registry:
            begun = self.sink.mount(repository, blob.digest, home.repository)
            if begun is None:
                return "mounted"
        copy = RegistryBlob(self.source, home.repository, blob.digest, blob.size)
        self.sink.upload(repository, copy, self.meter, begun)
        return "copied"


def _described(
    manifest: Manifest, added: list[str], placed: dict[str, str]
) -> tuple[ImageLayer, ...]:
    purposes = ["base"] * (len(manifest.layers) - len(added)) + added
    return tuple(
        ImageLayer(purpose, layer.digest, layer.size, placed[layer.digest])
        for purpose, layer in zip(purposes, manifest.layers, strict=True)
    )
