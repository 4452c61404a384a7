"""A run: a handle on what was submitted, alive or over, here or in another notebook."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.base import HasSDK
from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote import carrier_log
from distrain_nb.backends.remote.submission import read_links
from distrain_nb.errors import (
    OptionError,
    RunCancelled,
    RunFailed,
    RunNotReady,
    RunUnreadable,
)
from distrain_nb.run.log.reader import Line, LogReader, still
from distrain_nb.run.results import RETURNED, Results, is_ours
from distrain_nb.run.summary import UNREADABLE
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import (
    EVENTS_FOLDER,
    OPTIONS_FILE,
    RECORD_FILE,
    RESOURCES_FOLDER,
    RESULTS_FOLDER,
    SCHEMA,
)
from distrain_nb.worker.files.status import State, Status

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    import pandas as pd

    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.run.store import Record

LOOK_EVERY_S = 0.05
_DAMAGE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    OptionError,
)


class Run:
    """What was submitted. All that it tells is read from disk, so any process may hold one."""

    def __init__(self, record: Record) -> None:
        self.record = record

    @cached_property
    def _backend(self) -> AnyBackend:
        return find(self.record.backend)

    @property
    def id(self) -> int:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def backend(self) -> str:
        return self.record.backend

    @property
    def rehearsed(self) -> bool:
        """Whether a stand-in on this machine took the service's place."""
        return bool(self.record.handle.get("rehearsal"))

    @property
    def created(self) -> float:
        """Seconds since the epoch."""
        return self.record.created

    @property
    def experiment(self) -> str:
        return self.record.experiment

    @property
    def line(self) -> str:
        """The layout that it was submitted with, as options."""
        return self.record.line

    @property
    def options(self) -> dict[str, list[str]]:
        """The options of its job that it was submitted with, such as the values of `param`."""
        with self._readable(), suppress(FileNotFoundError):
            return dict(json.loads((self.folder / OPTIONS_FILE).read_text(encoding="utf-8")))
        return {}

    @property
    def folder(self) -> Path:
        """Where its program, log, metrics and results are on this machine."""
        return self.record.folder

    @property
    def status(self) -> Status:
        """State, phase, times, error and processes, as of now.

        Raises RunUnreadable where its folder is gone, or damaged.
        """
        with self._readable():
            return self._backend.status(dict(self.record.handle), self.folder)

    @property
    def state(self) -> State:
        return self.status.state

    @property
    def may_be_deleted(self) -> bool:
        """Whether it has ended, or can't be read, so that nobody can wait for its end."""
        try:
            return self.state.final
        except RunUnreadable:
            return True

    def cancel(self) -> None:
        """Ask for it to be stopped; returns at once. Raises RunUnreadable."""
        with self._readable():
            self._backend.cancel(dict(self.record.handle), self.folder)

    def wait(self, timeout: float | None = None) -> Run:
        """Until it has ended, `timeout` seconds at most; gives itself.

        Raises RunFailed with the report, RunCancelled, or TimeoutError.
        """
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while not self.state.final:
            if time.monotonic() >= end:
                raise TimeoutError(f"run {self.id} is {self.state} after {timeout:g} s")
            time.sleep(LOOK_EVERY_S)
        self.check()
        return self

    def check(self) -> None:
        """Raises RunFailed with the report, or RunCancelled, if it has ended so.

        Warns of a success that is none, such as of ranks that worked alone.
        """
        status = self.status
        if status.state is State.SUCCEEDED and status.note.startswith("warning: "):
            warnings.warn(f"run {self.id}: {status.note[len('warning: ') :]}", stacklevel=2)
        if status.state is State.FAILED:
            raise RunFailed(f"run {self.id} ({self.name}) failed\n{status.error}")
        if status.state is State.CANCELLED:
            why = f": {status.error}" if status.error else ""
            raise RunCancelled(f"run {self.id} ({self.name}) was cancelled{why}")

    def lines(self, rank: int | None = None) -> Iterator[Line]:
        """The log as it is on disk now, of all processes or of the one that has this rank.

        Raises ValueError for a rank that the run doesn't have.
        """
        process = None if rank is None else self.process_of(rank)
        return (line for line in LogReader(self.folder) if process in (None, line.process))

    def process_of(self, rank: int) -> int:
        """The index in the log of the process that has this rank in the world.

        Parameter servers, reducers and evaluators have no rank. Ranks come first in the log, so
        of a run that has not named its processes, or never could, it is the rank itself. Raises
        ValueError for a rank that the run doesn't have.
        """
        ranks = {p.rank: p.index for p in self.status.processes if p.rank is not None}
        if ranks and rank not in ranks:
            raise ValueError(f"run {self.id} has no rank {rank}; its ranks are 0 to {max(ranks)}")
        return ranks.get(rank, rank)

    def logs(self, rank: int | None = None) -> str:
        """The log as text, each line after its process's label, as in `[rank 3] …`; progress bars
        as they were left.

        With `rank`, the lines of that rank of the world alone: Raises ValueError for one that
        the run doesn't have.
        """
        labels = {p.index: p.label for p in self.status.processes}
        return "\n".join(
            f"[{labels.get(line.process, line.process)}] {line.text}"
            for line in still(self.lines(rank))
        )

    def carrier_log(self) -> str:
        """What the process on this machine that carries it to its cloud has done and met, such as
        why a call of the service failed: a record a line, as `TIME LEVEL PROCESS LOGGER: MESSAGE`
        in UTC, with tracebacks. Of a long one the end.

        Raises OptionError for a run that no such process carries.
        """
        with self._readable():
            found = carrier_log.read(self.folder)
        if not found:
            raise OptionError(f"run {self.id} has no carrier: it runs on {self.backend}")
        return found

    @property
    def links(self) -> dict[str, str]:
        """Where its job and folders are in a cloud, by what they are called; empty for others."""
        with self._readable():
            return read_links(self.folder)

    def sdk_job(self) -> Any:
        """The object that the cloud's own SDK has for its job, as of now: `aiplatform.CustomJob` on
        Vertex AI, `aiplatform.CustomTrainingJob` with `pipeline`, and on SageMaker
        `sagemaker.core.resources.TrainingJob` (the extra `sagemaker-sdk`).

        Raises RunNotReady before the service has named the job and for a rehearsal, whose service
        has gone; OptionError for a run on this machine; DistrainError where the SDK isn't
        installed, or the service refuses.
        """
        backend = self._backend
        if not isinstance(backend, HasSDK):
            raise OptionError(f"run {self.id} has no job of an SDK: it runs on {self.backend}")
        try:
            return backend.sdk_job(dict(self.record.handle), self.folder)
        except RunNotReady as wrong:
            raise RunNotReady(f"run {self.id} has no job of an SDK: {wrong}") from None

    def metrics(self) -> pd.DataFrame:
        """A row for each step, a column for each metric."""
        from distrain_nb.run.metrics.events import table

        return table(self.folder / EVENTS_FOLDER)

    def resources(self) -> pd.DataFrame:
        """What each rank used of the machine: a row for each rank and second of the run.

        Empty for a run that was over at once, and where the machine has no /proc.
        """
        from distrain_nb.run.metrics.events import table

        return table(self.folder / RESOURCES_FOLDER)

    def fetch(self) -> Mapping[str, str]:
        """Ask again for what its job left and could not be fetched when it had ended; what is
        still missing, and why. Empty for a run that goes on."""
        if not self.state.final:
            return {}
        with self._readable():
            return self._backend.fetch(dict(self.record.handle), self.folder)

    def done(self) -> bool:
        """Whether it has ended, in whatever way. Raises RunUnreadable."""
        return self.state.final

    def result(self, timeout: float | None = None) -> Any:
        """Wait for its end, `timeout` seconds at most, and give what the function returned on
        rank 0; for a cell, `results`.

        Raises RunFailed with the report, RunCancelled, TimeoutError, ValueError for what could
        not be saved, ResultUntrusted for what is more than plain data and came from a bucket
        (`results.trusted["result"]` reads it), and what `results` raises.
        """
        self.wait(timeout)
        return self.results[RETURNED] if RETURNED in self.results.named else self.results

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait for its end, `timeout` seconds at most; RunFailed or RunCancelled if it has ended
        so, else None. Raises TimeoutError."""
        try:
            self.wait(timeout)
        except (RunFailed, RunCancelled) as wrong:
            return wrong
        return None

    def future(self) -> Future[Any]:
        """A future that has `result()` when the run has ended, for
        `concurrent.futures.as_completed` and `wait`. To cancel it leaves the run alone."""
        from distrain_nb.run.future import future_of

        return future_of(self)

    def __await__(self) -> Generator[Any, None, Any]:
        """`await run` gives `result()` and leaves the event loop free; to cancel the task that
        awaits leaves the run alone."""
        return asyncio.wrap_future(self.future()).__await__()

    @property
    def results(self) -> Results:
        """What `--result` named, by name: plain data alone where others may have written it. It is
        asked for again if it could not be fetched. A function's run has `result` in it, what the
        function returned on rank 0.

        Raises RunNotReady before the run has ended, and where the results can't be fetched.
        """
        if not self.state.final:
            raise RunNotReady(f"run {self.id} is {self.state}: it has no result yet; wait() for it")
        missing = self.fetch().get(RESULTS_FOLDER)
        if missing:
            raise RunNotReady(f"the results of run {self.id} can't be fetched: {missing}")
        folder = self.folder / RESULTS_FOLDER
        return Results(folder, self.id, self.backend == "local" and is_ours(folder))

    def __repr__(self) -> str:
        try:
            state = str(self.state)
        except RunUnreadable:
            state = UNREADABLE
        return f"Run({self.id}, {self.name!r}, on={self.backend!r}, state={state!r})"

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What is wrong with its files, as RunUnreadable."""
        try:
            yield
        except _DAMAGE as wrong:
            raise RunUnreadable(self._why(wrong)) from wrong

    def _why(self, wrong: Exception) -> str:
        if not self.folder.exists():
            why = f"its folder {self.folder} is gone"
        elif self._schema() > SCHEMA:
            why = (
                f"a later version of distrain-nb has written {self.folder} "
                f"(schema {self._schema()}; this one reads {SCHEMA})"
            )
        elif isinstance(wrong, OSError | OptionError | fields.Damaged):
            why = str(wrong)
        else:
            why = f"{self.folder} is damaged ({type(wrong).__name__}: {wrong})"
        return f"run {self.id} ({self.name}) can't be read: {why}; `%distrain delete {self.id}`"

    def _schema(self) -> int:
        """The number of the rules by which its folder was written."""
        with suppress(OSError, fields.Damaged):
            number = fields.load(self.folder / RECORD_FILE).get("schema")
            return number if isinstance(number, int) else SCHEMA
        return SCHEMA
