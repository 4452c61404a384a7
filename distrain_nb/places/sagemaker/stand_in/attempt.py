"""One start of all of a job's hosts, from empty disks to their end."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from distrain_nb.places.sagemaker.stand_in.channels import FILE_MODES, channels, download
from distrain_nb.places.sagemaker.stand_in.hosts import HostDisk, hosts, place_of
from distrain_nb.places.sagemaker.stand_in.pipe import Pipe
from distrain_nb.places.sagemaker.stand_in.secrets_manager import create_secrets
from distrain_nb.places.sagemaker.stand_in.store import (
    KeptBucket,
    ObjectStore,
    S3Location,
    SyncedFolder,
)
from distrain_nb.places.sagemaker.stand_in.streams import LogStream, LogStreams
from distrain_nb.places.sagemaker.stand_in.training_job import TrainingJob
from distrain_nb.program.progress import report
from distrain_nb.rehearsal.job_folder import JobFolder
from distrain_nb.rehearsal.replicas import Replicas

if TYPE_CHECKING:
    from distrain_nb.rehearsal.engine import Engine, Network
    from distrain_nb.rehearsal.faults import Faults, Preemption

_LONGEST_FAILURE = 1 << 16


@dataclass(frozen=True)
class TrainingJobContext:
    """The surroundings of jobs; `s3_port` is where S3 listens.

    `standing_buckets` are those for which folders of this machine stand. A job that is stopped gets
    `grace` seconds between SIGTERM and SIGKILL. Steps of jobs are reported in the context `steps`.
    """

    engine: Engine
    store: ObjectStore
    streams: LogStreams
    faults: Faults
    s3_port: int
    folder: Path
    grace: float = 120.0
    standing_buckets: Sequence[KeptBucket] = ()
    steps: Context = field(default_factory=copy_context)


class Attempt:
    """The hosts of a job, in `network`."""

    def __init__(
        self,
        context: TrainingJobContext,
        job: TrainingJob,
        number: int,
        network: Network,
        losses: list[Preemption],
    ) -> None:
        self._context = context
        self._job = job
        self._folder = context.folder / job.name / str(number)
        self._machines = [
            HostDisk(host, self._folder / host.name / "ml") for host in hosts(job.request)
        ]
        self._synced: list[SyncedFolder] = []
        self._pipes: list[Pipe] = []
        self._streams: dict[str, LogStream] = {}
        self.replicas = Replicas(network, losses, self._read)

    def prepare(self) -> None:
        """Lay every host's /opt/ml out, with its data and what an attempt before has kept.

        Raises botocore's ClientError where the role may not read, and OutsideJobFolder for a key
        that no file can have.
        """
        store = f"http://127.0.0.1:{self._context.s3_port}"
        create_secrets(self._job.request, store, self._job.region)
        for machine in self._machines:
            report(f"bringing the data of {machine.host.name}")
            machine.lay_out(self._job.request, self.replicas.network.interface)
            self._download_data(machine)
            checkpoints = self._synced_folder(machine, "CheckpointConfig", "S3Uri", "")
            if checkpoints:
                checkpoints.restore()
            below = f"{self._job.name}/tensorboard-output"
            self._synced_folder(machine, "TensorBoardOutputConfig", "S3OutputPath", below)

    def _download_data(self, machine: HostDisk) -> None:
        names = [disk.host.name for disk in self._machines]
        below = "input/data"
        for channel in channels(self._job.request):
            folder = JobFolder(machine.folder, f"{below}/{channel.name}")
            if not channel.source:
                folder.make()  # a file system that is not here
                continue
            store = self._context.store
            pieces = channel.pieces(store, names, machine.host.name)
            if channel.mode in FILE_MODES:
                download(pieces, store, folder)
            else:
                where = JobFolder(machine.folder, below)
                self._pipes.append(Pipe(channel, pieces, store, where))

    def _synced_folder(
        self, machine: HostDisk, section: str, uri: str, below: str
    ) -> SyncedFolder | None:
        inside = place_of(self._job.request, section)
        if inside is None:
            return None
        place = S3Location.of(self._job.request[section][uri])
        place = place.below(below) if below else place
        folder = SyncedFolder(machine.within(inside), place, self._context.store)
        self._synced.append(folder)
        return folder

    def start(self) -> None:
        """Start every host's container."""
        s3 = self.replicas.network.reach(self._context.s3_port)
        for name in (machine.host.name for machine in self._machines):
            stream = f"{self._job.name}/{name}-{time.time_ns() // 1_000_000}"
            self._streams[name] = self._context.streams.open(self._job.region, stream)
        self.replicas.start(
            {
                machine.host.name: machine.container(self._job.arn, self._job.request, s3)
                for machine in self._machines
            }
        )

    def _read(self, host: str, _: str, text: str) -> None:
        self._context.streams.write(self._streams[host], text)
        self._job.record.read(text)

    def trouble(self) -> str:
        """Return the error of the first pipe that failed; empty if none did."""
        return next((pipe.error for pipe in self._pipes if pipe.error), "")

    def failure(self, host: str) -> str:
        """Return what a host has written to /opt/ml/output/failure."""
        for machine in self._machines:
            if machine.host.name == host:
                with suppress(OSError), JobFolder(machine.folder, "output").open("failure") as file:
                    return file.read(_LONGEST_FAILURE).decode("utf-8", "replace").strip()
        return ""

    def save(self) -> None:
        """Upload checkpoints and event files to S3 as they are now."""
        for folder in self._synced:
            folder.save()

    def upload(self) -> str:
        """Upload the model and the other output to S3. Returns the model's URI.

        Raises botocore's ClientError where the role may not write.
        """
        config = self._job.request["OutputDataConfig"]
        place = S3Location.of(config["S3OutputPath"]).below(f"{self._job.name}/output")
        output = [JobFolder(machine.folder, "output/data") for machine in self._machines]
        model = [JobFolder(machine.folder, "model") for machine in self._machines]
        if config.get("CompressionType") == "NONE":
            self._upload_files(output, place.below("data"))
            self._upload_files(model, place.below("model"))
            return f"{place.below('model')}/"
        if any(_files(output)):
            self._upload_archive(output, place.below("output.tar.gz"))
        self._upload_archive(model, place.below("model.tar.gz"))
        return str(place.below("model.tar.gz"))

    def _upload_archive(self, folders: list[JobFolder], place: S3Location) -> None:
        with tempfile.TemporaryFile(dir=self._folder) as archive:
            with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
                for name, file in _files(folders):
                    stat = os.fstat(file.fileno())
                    entry = tarfile.TarInfo(name)
                    entry.size, entry.mtime, entry.mode = stat.st_size, stat.st_mtime, stat.st_mode
                    tar.addfile(entry, file)
            archive.seek(0)
            self._context.store.write(place, archive)

    def _upload_files(self, folders: list[JobFolder], place: S3Location) -> None:
        for name, file in _files(folders):
            self._context.store.write(place.below(name), file)

    def close(self) -> None:
        """End what still runs, keep what it has written to buckets, and forget the disks."""
        self.replicas.close()
        for pipe in self._pipes:
            pipe.close()
        for bucket in self._context.standing_buckets:
            for note in bucket.save():
                self._context.streams.write(self._job.notes, note)
        shutil.rmtree(self._folder, ignore_errors=True)


def _files(folders: list[JobFolder]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the files of all hosts by their names, open; of those with one name, the first
    host's."""
    names = set()
    for folder in folders:
        for name, _ in folder.files():
            if name not in names:
                names.add(name)
                with folder.open(name) as file:
                    yield name, file
