"""Jobs whose replicas share a folder with this machine, except how they are started and stopped.

`worker/replica/shared.py` describes the folder and how a replica is started there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from distrain_nb.backends.job import Job
from distrain_nb.backends.remote import tracker
from distrain_nb.backends.remote.delivery import ProgramFolder, files_of_worker, with_bytecode
from distrain_nb.backends.remote.names import run_name
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.backends.remote.replica_files import (
    ended_at,
    first_failure,
    folder_below,
    labels_of,
    outcome_of,
    own_files,
    status_of,
)
from distrain_nb.backends.remote.service import Cursor, LogEntry, Observed, Stored
from distrain_nb.backends.remote.submission import Spec, retry_causes
from distrain_nb.backends.remote.variables import variables_of
from distrain_nb.backends.tuning import trial_variables
from distrain_nb.cluster import choose, preload, time_limit
from distrain_nb.errors import OptionError, shown
from distrain_nb.layout import Layout, Role
from distrain_nb.secrets import STORED
from distrain_nb.types import JsonObject
from distrain_nb.worker.files import orders
from distrain_nb.worker.files.coded_line import FAILED, CodedLine
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.log import parse_all
from distrain_nb.worker.files.status import Progress, State
from distrain_nb.worker.replica import shared, start
from distrain_nb.worker.supervisor.retries import RunAttempt
from distrain_nb.worker.supervisor.retries import variables as retried_variables

if TYPE_CHECKING:
    from typing_extensions import Self

    from distrain_nb.image import Listener
    from distrain_nb.worker.files.orders import Order

START, ATTEMPT, WORKER = "start.py", "attempt", "worker"
READ_AT_MOST, READ_AT_LEAST = 16 << 20, 16 << 10  # bytes of all logs at a time; of one
_REPLICA = re.compile(r"(\d+)(?:\.\d+)?")

# The code of the job that this process has laid down last, by the folder of jobs.
_laid_down: dict[Path, Path] = {}
_laying_down = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class SharedSpec(Spec):
    """The spec of a job in a shared folder. `folder` is the job's own folder, whose path is the
    same on this machine and on all machines of the job. `environment` has the variables of each
    replica. `variables` has the values of `--env`, and `hidden` their names. A backend adds
    fields of its own."""

    folder: str
    environment: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

    @classmethod
    def for_job(
        cls,
        job: Job[RemoteOptions],
        folder: str,
        ranks_per_replica: int,
        **named: object,
    ) -> Self:
        """Return the spec of a job with that many ranks a replica, in its own folder below
        `folder`. A relative path starts at the job's working folder. `named` are fields that a
        backend has added. The run's name is also the name of its folder and of the service's
        job: lower case letters, digits and dashes. Raises OptionError for an invalid `--env`."""
        name = run_name(job) if job.name else job.nonce
        values: dict[str, object] = {
            **named,
            "run": name,
            "folder": f"{_plain_folder(job.folder / Path(folder).expanduser())}/{name}",
            "environment": environment(job, ranks_per_replica),
            "variables": variables(job.options.env),
            "hidden": tuple(variables(job.options.env)),
            "retries": job.layout.retries or 0,
            "retried": retry_causes(job.layout),
        }
        return cls(**values)  # type: ignore[arg-type]


def _plain_folder(folder: Path) -> Path:
    """Return the folder of jobs. Raises OptionError for a path that PYTHONPATH can't have, where
    colons separate paths, or an option of sbatch, where a backslash changes what follows."""
    if not str(folder).isprintable() or set(str(folder)) & set(":\\"):
        raise OptionError(
            f"invalid folder of jobs {shown(str(folder))}: expected a path without colons, "
            "backslashes and control characters"
        )
    return folder


def environment(job: Job[RemoteOptions], ranks_per_replica: int) -> dict[str, str]:
    """Return the variables of all replicas of a job: its ranks, its launcher, the modules that are
    imported once for all ranks, the results to save, and who the other replicas are."""
    launcher = job.layout.launcher
    launcher = choose(job.program)[0] if launcher == "auto" else launcher
    variables = {
        "DISTRAIN_RUN": job.name or job.nonce,
        "DISTRAIN_RANKS": str(ranks_per_replica),
        "DISTRAIN_LAUNCHER": launcher,
        "DISTRAIN_PRELOAD": ",".join(preload(job.program, launcher)),
        "DISTRAIN_RESULTS": ",".join(job.results),
        "DISTRAIN_MPI_OPTIONS": (job.layout.mpi_options or "") if launcher == "mpi" else "",
        shared.REPLICAS_VARIABLE: ",".join(f"{role}={n}" for role, n in _pools(job.layout) if n),
        "PYTHONUNBUFFERED": "1",
    }
    named = {name: text for name, text in variables.items() if text}
    of_limit = time_limit(job.layout)
    return {**named, **of_limit, **tracker.variables(job), **trial_variables(job.trial)}


def _pools(layout: Layout) -> Iterator[tuple[str, int]]:
    """Yield how many replicas each role has. Without a primary, the first worker becomes it."""
    counts = {role.value: pool.replicas for role, pool in layout.pools()}
    if Role.PRIMARY.value not in counts:
        counts[Role.WORKERS.value] = counts.get(Role.WORKERS.value, 1) - 1
        yield Role.PRIMARY.value, 1
    yield from counts.items()


def variables(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of `--env`. Raises OptionError."""
    values = variables_of(texts)
    for name, value in values.items():
        if value.startswith(STORED):
            message = f"invalid --env '{name}={value}': this place has no store of secrets"
            raise OptionError(message)
    return values


SpecT = TypeVar("SpecT", bound=SharedSpec)


@dataclass(frozen=True)
class SharedFolderService(ABC, Generic[SpecT]):
    """A job in a folder: a backend adds `create`, `find`, `observe` and `cancel`.

    Each replica is started by `command`. The service is its output folder too.
    """

    spec: SpecT

    @property
    def folder(self) -> Path:
        """The job's folder."""
        return Path(self.spec.folder)

    @property
    def members(self) -> Sequence[tuple[str, int]]:
        """The role of each replica and its index there, by the replica's number."""
        return _members(self.spec.environment.get(shared.REPLICAS_VARIABLE, "primary"))

    def command(self, index: int | str, python: str = "python3") -> list[str]:
        """Return the command that starts a replica on its machine, by its number or a variable
        with the number. Names of hosts may follow, separated by commas."""
        return [python, str(self.folder / START), str(index)]

    def stage(self, program: Path, tell: Listener) -> JsonObject:
        """Write the program, the worker and the environment, which only this user may read."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _laying_down:  # one after another: the next links what this one copies
            self._copy_code(program, tell)
        shutil.copy(start.__file__, self.folder / START)
        self._tell(retried_variables(1, self.spec.retries) if self.spec.retries else {})
        return {"folder": str(self.folder)}

    def _copy_code(self, program: Path, tell: Listener) -> None:
        code, earlier = self.folder / shared.CODE, _laid_down.get(self.folder.parent)
        shutil.rmtree(code, ignore_errors=True)  # of a carrier that was killed
        files = list(ProgramFolder(program, ()).files())
        code.mkdir()
        if not (earlier and _is_linked(earlier / WORKER, code / WORKER)):
            files += with_bytecode((f"{WORKER}/{name}", path) for name, path in files_of_worker())
        for number, (name, path) in enumerate(files):
            tell(Progress("copying the code", number, len(files)))
            target = code / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)  # bytecode counts for a file of the same time
        _laid_down[self.folder.parent] = code

    def _tell(self, more: Mapping[str, str]) -> None:
        """Write each replica's settings into its folder."""
        variables = {**self.spec.environment, **self.spec.variables, **more}
        mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(self.folder / shared.VARIABLES, mode, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(variables, file)

    one_log = True

    def prepare_attempt(self, request: JsonObject, attempt: RunAttempt, retries: int) -> JsonObject:
        """Write the replicas' settings for the next attempt."""
        (self.folder / ATTEMPT).write_text(str(attempt.number))
        self._tell(retried_variables(attempt.number, retries))
        return request

    @property
    def attempt(self) -> int:
        """The number of the attempt that the folder was last made ready for."""
        try:
            return int((self.folder / ATTEMPT).read_text())
        except FileNotFoundError:
            return 1

    def give(self, order: Order, files: Mapping[str, Path]) -> None:
        """Give an order to the replicas of a session. A repeated order changes nothing. Raises
        Unanswered if it may not have arrived."""
        orders.give(self.folder, order, files)

    def pull(self) -> None:
        """Copy what replicas have left into the job's folder."""

    def lost(self) -> Mapping[int, str] | None:
        """Return the replicas that are gone by their numbers, with reasons; None if unknown."""
        return None

    @abstractmethod
    def create(self, request: JsonObject) -> str: ...

    @abstractmethod
    def find(self, request: JsonObject) -> str: ...

    @abstractmethod
    def observe(self, job: str) -> Observed: ...

    @abstractmethod
    def cancel(self, job: str) -> None: ...

    def first_failure(self) -> str:
        """Return the report of the replica that failed first; empty if none has failed."""
        return first_failure((folder, status_of(folder)) for folder in self._last_attempts())

    def failing(self) -> str:
        """Return a line about the replica that failed first, long before the job's end; empty if
        none has."""
        return self.first_failure().partition("\n")[0]

    def outcome(self) -> Observed | None:
        """Return how the job ended, from what its replicas left; None until all have ended. It
        serves services that forget their jobs."""
        statuses = [(folder, outcome_of(folder)) for folder in self._last_attempts()]
        written = [status for _, status in statuses if status is not None]
        if not written or len(written) < len(self.members):
            return None
        if any(status.state is State.FAILED for status in written):
            return Observed(State.FAILED, str(State.FAILED), first_failure(statuses))
        ended = [status for status in written if status.state is State.CANCELLED]
        if ended:
            return Observed(State.CANCELLED, str(State.CANCELLED), min(ended, key=ended_at).error)
        return Observed(State.SUCCEEDED, str(State.SUCCEEDED))

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:  # noqa: ARG002
        """Return the lines of all replicas, in order of time. After the last lines, the values
        of `--env` are deleted from the folder."""
        read: list[LogEntry] = []
        times: list[float] = []
        reached = dict(cursor)
        folders = self._folders()
        # The output of a thousand replicas may not fit into memory.
        most = max(READ_AT_LEAST, READ_AT_MOST // max(1, len(folders)))
        for folder in folders:
            begin = cast("int", cursor.get(folder.name, 0))
            entries, size = self._lines(folder, begin, most, last=last)
            error, variables = self._error(folder, f"{folder.name} error", cursor)
            entries += error
            read += entries
            # The lines of one replica keep their order, even if its clock jumps.
            times += accumulate([entry.time for entry in entries], max)
            reached |= {folder.name: size, **variables}
        if last:
            (self.folder / shared.VARIABLES).unlink(missing_ok=True)
        return [read[place] for place in sorted(range(len(read)), key=times.__getitem__)], reached

    def links(self, job: str) -> Mapping[str, str]:  # noqa: ARG002
        """Return the folder."""
        return {"folder": str(self.folder)}

    @property
    def output(self) -> Self:
        """The service itself reads what the program leaves."""
        return self

    def objects(self, below: str) -> Sequence[Stored]:
        """Return the files below the output folder whose names begin with `below`, without
        links."""
        output = self.folder / shared.OUTPUT
        if not (output / below).resolve().is_relative_to(output.resolve()):
            return []
        return [
            Stored(name, about.st_size, str(about.st_mtime_ns))
            for name, about in sorted(own_files(str(output / below), below))
        ]

    def read(self, name: str, start: int, end: int) -> bytes:
        """Return bytes of a file there."""
        with (self.folder / shared.OUTPUT / name).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def _folders(self) -> list[Path]:
        """Return the folders of all replicas in all attempts."""
        above = self.folder / shared.REPLICAS
        try:
            names = [
                name for name in (e.name for e in os.scandir(above)) if _REPLICA.fullmatch(name)
            ]
        except FileNotFoundError:
            return []
        names.sort(key=lambda name: tuple(map(int, name.split("."))))
        return [folder_below(above, name) for name in names]

    def _last_attempts(self) -> Iterable[Path]:
        attempt = self.attempt
        present = [p for p in self._folders() if int(p.name.partition(".")[2] or 1) >= attempt]
        return {path.name.partition(".")[0]: path for path in present}.values()

    def _member(self, folder: Path) -> tuple[str, int]:
        return self.members[int(folder.name.partition(".")[0])]

    def _lines(
        self, folder: Path, size: int, most: int, *, last: bool
    ) -> tuple[list[LogEntry], int]:
        """Return the whole records behind the first `size` bytes, `most` bytes at most, and the
        new size."""
        try:
            with (folder / LOG_FILE).open("rb") as file:
                file.seek(size)
                data = file.read() if last else file.read(most)
                if len(data) == most and b"\n" not in data and not last:
                    data += file.read(READ_AT_MOST)  # a line that is longer
            complete = data[: data.rfind(b"\n") + 1]
            labels = labels_of(folder) if complete else ()
        except (FileNotFoundError, Damaged):
            return [], size
        role, replica = self._member(folder)
        label = dict(enumerate(labels)).get
        entries = [
            LogEntry(at, role, replica, text, stream, (), label(process, ""))
            for at, process, stream, text in parse_all(complete)
        ]
        return entries, size + len(complete)

    def _error(
        self, folder: Path, key: str, cursor: Cursor
    ) -> tuple[list[LogEntry], dict[str, bool]]:
        """Return a replica's report of its failure, once."""
        status = None if cursor.get(key) else status_of(folder)
        if status is None or not status.state.final or not status.error:
            return [], {}
        (role, replica), moment = self._member(folder), status.times.get(str(status.state), 0.0)
        headline, *rest = status.error.splitlines()
        if status.cause:
            headline = str(CodedLine(FAILED, headline, status.cause.facts()))
        lines = [LogEntry(moment, role, replica, text, "e") for text in (headline, *rest)]
        return lines, {key: True}


def _is_linked(source: Path, target: Path) -> bool:
    """Link the files of an earlier job's worker into a new folder, in a tenth of a copy's time.
    Return False if that job is gone, or if the file system has no such links."""
    try:
        shutil.copytree(source, target, copy_function=os.link)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


@lru_cache(maxsize=16)
def _members(pools: str) -> tuple[tuple[str, int], ...]:
    return tuple(shared.replicas(pools))
