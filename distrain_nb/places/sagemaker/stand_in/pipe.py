"""Pipe mode: a FIFO for each pass over a channel, fed from S3 while the program reads it."""

from __future__ import annotations

import errno
import gzip
import json
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from distrain_nb.places.sagemaker.stand_in.store import ObjectStore, S3Location

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.stand_in.channels import InputChannel, InputObject
    from distrain_nb.rehearsal.job_folder import JobFolder

_LOOK_EVERY_S = 0.02
_CHUNK = 1 << 18
_RECORD_IO = 0xCED7230A


class Pipe:
    """Feeds `FOLDER/CHANNEL_0`, `FOLDER/CHANNEL_1`, … to whoever opens them, one after another."""

    def __init__(
        self,
        channel: InputChannel,
        pieces: Sequence[InputObject],
        store: ObjectStore,
        folder: JobFolder,
    ) -> None:
        self._channel = channel
        self._pieces = pieces
        self._store = store
        self._folder = folder
        self._closed = threading.Event()
        self.error = ""
        self._make(0)
        self._thread = threading.Thread(target=self._run, name=channel.name, daemon=True)
        self._thread.start()

    def _name(self, number: int) -> str:
        return f"{self._channel.name}_{number}"

    def _make(self, number: int) -> None:
        self._folder.make_pipe(self._name(number))

    def _run(self) -> None:
        number = 0
        while (sink := self._opened(number)) is not None:
            try:
                with suppress(BrokenPipeError), sink:
                    # So that whoever comes to the end finds the next.
                    self._make(number + 1)
                    for chunk in _chunks(self._channel, self._pieces, self._store):
                        _write(sink, chunk)
                self._folder.unlink(self._name(number))
            except (ClientError, OSError) as error:
                self.error = str(error)
                return
            number += 1

    def _opened(self, number: int) -> FileIO | None:
        """Return the end to write to, once somebody reads; None when nobody will any more."""
        while not self._closed.wait(_LOOK_EVERY_S):
            try:
                sink = self._folder.open_pipe(self._name(number))
            except OSError as no:
                if no.errno != errno.ENXIO:  # which says that nobody reads yet
                    return None
            else:
                os.set_blocking(sink.fileno(), True)
                return sink
        return None

    def close(self) -> None:
        """Feed the pipe no more: its reader has ended."""
        self._closed.set()
        self._thread.join()


def _write(file: Any, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]


def _chunks(
    channel: InputChannel, pieces: Sequence[InputObject], store: ObjectStore
) -> Iterator[bytes]:
    """Yield one pass over the channel's data."""
    for piece in pieces:
        if channel.augmented:
            yield from _records(channel, store.read(piece.place).read(), store)
        elif channel.wrapped:
            yield _record(_plain(channel, store.read(piece.place)).read())
        else:
            source = _plain(channel, store.read(piece.place))
            while chunk := source.read(_CHUNK):
                yield chunk


def _plain(channel: InputChannel, source: Any) -> Any:
    zipped = channel.asked.get("CompressionType") == "Gzip"
    return gzip.GzipFile(fileobj=source) if zipped else source


def _records(channel: InputChannel, manifest: bytes, store: ObjectStore) -> Iterator[bytes]:
    """Yield the attributes of each line, in the order that was asked for; `…-ref` names an
    object."""
    for line in filter(None, manifest.splitlines()):
        values = json.loads(line)
        for name in channel.source["AttributeNames"]:
            value = values[name]
            if name.endswith("-ref"):
                data = store.read(S3Location.of(value)).read()
            else:
                data = (value if isinstance(value, str) else json.dumps(value)).encode()
            yield _record(data) if channel.wrapped else data


def _record(data: bytes) -> bytes:
    """Return a record of RecordIO: a magic number and the length, padded to four bytes."""
    return struct.pack("<II", _RECORD_IO, len(data)) + data + b"\0" * (-len(data) % 4)
