"""Carriers that are killed at a chosen point: before a write of theirs, before a call of a service,
or when the call has been answered. Points are counted from 1 in each process."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import botocore.httpsession
import botocore.loaders
import botocore.session
import grpc
import httpx
import requests.adapters

import distrain_nb
from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.service import Pace
from distrain_nb.backends.remote.submission import Journal, Submission
from distrain_nb.worker.files.folder import JOURNAL_FILE, PROGRAM_FOLDER, SUBMISSION_FILE
from distrain_nb.worker.files.status import Process, State, Status

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from types import FrameType

    from distrain_nb.backends.remote.backend import RemoteBackend

PACE = Pace(look=0.1, quiet=0.2, arrival=0.3, fetch=20.0)
PROCESSES = (Process(0, "rank 0", "primary", 0, 0),)
POINTS_FILE = "points.txt"

_CHANGES = ("os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir")

# Each carrier is a fork of a process that has imported what a carrier needs and read what botocore
# knows of the services: both take longer than what a carrier does until it is killed.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        __name__,
        "distrain_nb.places.vertex.service",
        "distrain_nb.places.sagemaker.service",
        "google.cloud.aiplatform_v1",
        "google.cloud.logging_v2",
        "google.cloud.storage",
    ]
)


def _read_once() -> None:
    """Whoever makes a client of AWS here, or in a fork, gets what the first one has read."""
    loader = botocore.loaders.JSONFileLoader
    read, known = loader.load_file, dict[str, Any]()

    def load_file(self: Any, path: str) -> Any:
        if path not in known:
            known[path] = read(self, path)
        return known[path]

    loader.load_file = load_file
    nobody = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nobody"}
    for name in ("sagemaker", "s3", "sts", "logs"):
        botocore.session.Session().create_client(name, "us-east-1", **nobody)


_read_once()


@dataclass(frozen=True)
class Crashing:
    """Runs that are carried to a backend's stand-in at `endpoints`: `planned` plans a program, and
    `jobs` tells the states of the jobs that the stand-in has of a run."""

    backend: str
    planned: Callable[[str], Any]
    endpoints: Mapping[str, str]
    jobs: Callable[[str], list[State]]

    def new_run(self, folder: Path, code: str) -> Path:
        """The folder of a run as `submit` leaves it."""
        plan = self.planned(code)
        folder.mkdir()
        plan.job.program.write(folder / PROGRAM_FOLDER)
        Submission(self.backend, asdict(plan.spec()), PROCESSES).write(folder)
        Status(State.STARTING).enter(State.STARTING).write(folder)
        return folder

    def staged(self, folder: Path, code: str) -> Path:
        """The folder of a run whose code is where its job will find it."""
        run = self.new_run(folder, code)
        backend = cast("RemoteBackend", find(self.backend))
        service = backend.service(Submission.read(run).spec, self.endpoints, run)
        request = service.stage(run / PROGRAM_FOLDER, lambda _: None)
        Journal(request=dict(request)).write(run)
        return run

    def carry(self, folder: Path, point: int = 0, room: str = "") -> bool:
        """Carry that run until the point-th point, or (0) for as long as it takes; whether the
        carrier came so far that it was killed. If a room is named, other points don't count."""
        return self.killed(folder, self.start(folder, point, room))

    def start(self, folder: Path, point: int = 0, room: str = "") -> BaseProcess:
        """A carrier of that run, as `carry` has it."""
        process = _context.Process(target=_carry, args=(folder, dict(self.endpoints), point, room))
        process.start()
        return process

    def killed(self, folder: Path, process: BaseProcess) -> bool:
        """Wait for a carrier of that run; whether it was killed."""
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL), (folder / "carrier.log").read_text()
        return process.exitcode != 0

    @property
    def room(self) -> str:
        """Where the code is that this backend alone runs."""
        return f"{Path(distrain_nb.__file__).parent}/places/{self.backend}/"

    def killed_at_each_point(self, folder: Path, room: str = "") -> int:
        """Carry that run until it goes through; how often a carrier was killed.

        What a carrier may find is the journal, and a job or none at the service: of those that
        find the same, each is killed one point later than the one before, so none is left out.
        """
        points: Counter[str] = Counter()
        while True:
            found = f"{journal(folder)} {len(self.jobs(run_of(folder)))}"
            points[found] += 1
            if not self.carry(folder, points[found], room):
                return points.total() - 1


def run_of(folder: Path) -> str:
    """What its job is known by."""
    return str(Submission.read(folder).spec["run"])


def another(run: Path, name: str) -> Path:
    """A run like that one, which is known by another name."""
    folder = Path(shutil.copytree(run, run.with_name(name)))
    for path in (folder / SUBMISSION_FILE, folder / JOURNAL_FILE):
        path.write_text(path.read_text().replace(run_of(run), f"{run_of(run)}-{name}"))
    return folder


def journal(folder: Path) -> str:
    """How far a run has been carried, whenever that was."""
    written = Journal.read(folder)
    return str(replace(written, sent=bool(written.sent)))


def points(folder: Path) -> list[str]:
    """The points that carriers of a run have come to."""
    return [point.partition("\t")[0] for point in _points(folder)]


def stacks(folder: Path) -> list[str]:
    """The functions of this project that were being called at these points."""
    return [point.partition("\t")[2] for point in _points(folder)]


def _points(folder: Path) -> list[str]:
    return (folder.parent / f"{folder.name}-{POINTS_FILE}").read_text().splitlines()


def _carry(folder: Path, endpoints: dict[str, str], point: int, room: str) -> None:
    log = os.open(folder / "carrier.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    _count(folder, point, room)
    Pace.of = lambda own, endpoints: PACE  # type: ignore[method-assign]
    carrier.carry(folder, endpoints)


def _count(folder: Path, point: int, room: str) -> None:
    told = os.open(
        folder.parent / f"{folder.name}-{POINTS_FILE}", os.O_WRONLY | os.O_CREAT | os.O_APPEND
    )
    left, lock = [point], threading.Lock()

    def reach(what: str) -> None:
        calls = list(_project_calls())
        if not any(file.startswith(room) for file, _ in calls):
            return
        with lock:
            left[0] -= 1
            os.write(told, f"{what}\t{' '.join(f'{f}:{name}' for f, name in calls)}\n".encode())
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    _count_writes(folder.parent, reach)
    _count_calls(reach)


def _project_calls() -> Iterator[tuple[str, str]]:
    """File and name of each function of this project that is being called, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    root = str(Path(distrain_nb.__file__).parent)
    while frame is not None:
        if frame.f_code.co_filename.startswith(root):
            yield frame.f_code.co_filename, frame.f_code.co_name
        frame = frame.f_back


def _count_writes(root: Path, reach: Callable[[str], None]) -> None:
    def hear(event: str, args: tuple[Any, ...]) -> None:
        writes = event in _CHANGES or (
            event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if writes and (isinstance(args[0], int) or str(args[0]).startswith(str(root))):
            reach(f"{event} {args[0]}")

    sys.addaudithook(hear)


def _count_calls(reach: Callable[[str], None]) -> None:
    for kind, name in (
        (botocore.httpsession.URLLib3Session, "send"),
        (requests.adapters.HTTPAdapter, "send"),
        (httpx.HTTPTransport, "handle_request"),
    ):
        setattr(kind, name, _counted(getattr(kind, name), reach))
    plain = grpc.insecure_channel

    def channel(*args: Any, **kwargs: Any) -> grpc.Channel:
        return grpc.intercept_channel(plain(*args, **kwargs), _Interceptor(reach))

    grpc.insecure_channel = channel


def _counted(call: Callable[..., Any], reach: Callable[[str], None]) -> Callable[..., Any]:
    def counted(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        reach(f"asks {request.method} {request.url}")
        answer = call(self, request, *args, **kwargs)
        reach(f"is answered {request.method} {request.url}")
        return answer

    return counted


class _Interceptor(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    def __init__(self, reach: Callable[[str], None]) -> None:
        self._reach = reach

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        self._reach(f"asks {details.method}")
        answer = continuation(details, request)
        answer.exception()  # waits for it
        self._reach(f"is answered {details.method}")
        return answer
