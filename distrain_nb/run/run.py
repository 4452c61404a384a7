"""A run: a handle on what was submitted, alive or over, here or in another notebook."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.base import Resumes
from distrain_nb.backends.cost import RunCost
from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote import carrier_log, links
from distrain_nb.errors import OptionError, RunNotReady, RunUnreadable
from distrain_nb.findings import Finding, Severity
from distrain_nb.run.annotation import Annotation
from distrain_nb.run.folder_access import writable
from distrain_nb.run.log.reader import Line, LogReader, final_lines
from distrain_nb.run.results import Results, is_ours
from distrain_nb.run.store import Store, default_name, readable
from distrain_nb.run.summary import UNREADABLE, clock, labels_of, tagged
from distrain_nb.run.waiting import Waitable
from distrain_nb.types import R, Value
from distrain_nb.worker.files.folder import (
    EVENTS_FOLDER,
    OPTIONS_FILE,
    RESOURCES_FOLDER,
    RESULTS_FOLDER,
    STEP_TIMES_FOLDER,
)
from distrain_nb.worker.files.status import Status
from distrain_nb.worker.files.tracked import FILES, Tracked
from distrain_nb.worker.supervisor.deviating import DeviationReader

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    from typing_extensions import Self

    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.run.displays import Display
    from distrain_nb.run.stacks import Stacks
    from distrain_nb.run.store import Record


class Run(Waitable[R]):
    """A submitted run, with what `result` returns as its type argument.

    Everything is read from its folder, so any process may hold one.
    """

    def __init__(self, record: Record) -> None:
        self.record = record

    @cached_property
    def _backend(self) -> AnyBackend:
        return find(self.record.backend)

    @property
    def id(self) -> int:
        """Its number in the list of runs."""
        return self.record.id

    @property
    def name(self) -> str:
        """Its name, as `--name` gave it or one made up."""
        return self.record.name

    @property
    def backend(self) -> str:
        """The name of the backend that runs it, such as `local`."""
        return self.record.backend

    @property
    def _place(self) -> str:
        """Where it runs, in words."""
        return self._backend.title

    @property
    def is_here(self) -> bool:
        """Whether its ranks are processes of this machine, which know its folder."""
        return self._backend.here

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
        """The name that `--experiment` gave; empty without one."""
        return self.record.experiment

    @property
    def study(self) -> str:
        """The key of the study of which it is a trial; empty for others."""
        return str(self.record.handle.get("study", ""))

    @property
    def session(self) -> str:
        """The name of the session of which it is a cell; empty for others."""
        return str(self.record.handle.get("session", ""))

    @property
    def line(self) -> str:
        """The layout that it was submitted with, as options."""
        return self.record.line

    @property
    def options(self) -> dict[str, list[str]]:
        """The options of its job that it was submitted with, such as the values of `param`."""
        with readable(self.record), suppress(FileNotFoundError):
            return dict(json.loads((self.folder / OPTIONS_FILE).read_text(encoding="utf-8")))
        return {}

    @property
    def note(self) -> str:
        """What people say of it; assign a text to change it. Raises OptionError for one of more
        than 2,000 characters, StoreError or RunUnreadable where it can't be kept."""
        return Annotation.read(self.folder).note

    @note.setter
    def note(self, text: str) -> None:
        Annotation.read(self.folder).changed(note=text).write(self.folder)

    @property
    def tags(self) -> tuple[str, ...]:
        """Words by which people find it, at first those of `--tag`; assign others to change them.
        Raises as `note` does."""
        return Annotation.read(self.folder).tags

    @tags.setter
    def tags(self, tags: Iterable[str]) -> None:
        texts = (tags,) if isinstance(tags, str) else tags
        Annotation.read(self.folder).changed(tags=texts).write(self.folder)

    @property
    def folder(self) -> Path:
        """Where its program, log, metrics and results are on this machine."""
        return self.record.folder

    @property
    def status(self) -> Status:
        """State, phase, times, error and processes, as of now.

        Raises RunUnreadable where its folder is gone, or damaged.
        """
        with readable(self.record):
            return self._backend.status(self.record.handle, self.folder)

    def cancel(self) -> None:
        """Ask for it to be stopped; returns at once. Raises RunUnreadable, StoreError where its
        folder can't be written."""
        title = f"run {self.id}"
        with readable(self.record), writable(title, self.folder, "can't be cancelled"):
            self._backend.cancel(self.record.handle, self.folder)

    @property
    def resumable(self) -> bool:
        """Whether it has ended, and `resume` can start it again from what it has saved."""
        backend = self._backend
        resumes = isinstance(backend, Resumes) and backend.has_saved(self.folder)
        return resumes and not (self.study or self.session) and self.state.final

    def resume(self) -> Self:
        """Start its program again, as a new run of the same name, layout and options, whose
        checkpoint folder has what this one saved.

        The program finds it where `AIP_CHECKPOINT_DIR` says, and has to load it. The new run is
        not mirrored in experiment trackers.

        Raises RunNotReady for a run that goes on; OptionError where nothing was saved, for a trial
        of a study, and for places that can't resume runs.
        """
        backend, record = self._backend, self.record
        if not isinstance(backend, Resumes):
            raise OptionError(f"run {self.id} can't be resumed: {self.backend} does not support it")
        if self.study:
            raise OptionError(f"run {self.id} can't be resumed: it is a trial of a study")
        if self.session:
            raise OptionError(
                f"run {self.id} can't be resumed: it is a cell of session {self.session}, and "
                "its values are in the ranks of the session"
            )
        if not self.state.final:
            raise RunNotReady(f"run {self.id} is {self.state}: cancel it first, or wait() for it")
        if not backend.has_saved(self.folder):
            raise OptionError(
                f"run {self.id} can't be resumed: it has saved nothing in AIP_CHECKPOINT_DIR that "
                "can be read here"
            )
        store, handle = Store(), {**record.handle, "resumes": self.id}
        name = "" if self.name == default_name(self.id) else self.name
        new = store.add(name, record.backend, record.experiment, record.line, self.options, handle)
        try:
            if cost := RunCost.read(self.folder):
                replace(cost, billed=None, stopped="").write(new.folder)
            with readable(record):
                backend.resume(self.folder, new.folder)
        except BaseException:
            store.delete(new)
            raise
        return type(self)(new)

    def lines(self, rank: int | None = None) -> Iterator[Line]:
        """Return the log as it is on disk now, of all processes or of the one that has this rank.

        Raises ValueError for a rank that the run doesn't have.
        """
        process = None if rank is None else self.process_of(rank)
        return (line for line in LogReader(self.folder) if process in (None, line.process))

    def process_of(self, rank: int) -> int:
        """Return the index in the log of the process that has this rank in the world.

        Parameter servers, reducers and evaluators have no rank. Ranks come first in the log, so
        of a run that has not named its processes, or never could, it is the rank itself. Raises
        ValueError for a rank that the run doesn't have.
        """
        ranks = {p.rank: p.index for p in self.status.processes if p.rank is not None}
        if ranks and rank not in ranks:
            raise ValueError(f"run {self.id} has no rank {rank}; its ranks are 0 to {max(ranks)}")
        return ranks.get(rank, rank)

    def logs(self, rank: int | None = None) -> str:
        """Return the log as text, each line after its process's label, as in `[rank 3] …`; progress
        bars as they were left.

        With `rank`, that rank's lines alone. Raises ValueError for one that the run doesn't have.
        """
        labels = labels_of(self.status)
        return "\n".join(tagged(labels, line) for line in final_lines(self.lines(rank)))

    def stacks(self) -> Stacks:
        """Return where each rank is, of a run that is at work on this machine: text, and in a
        notebook a flame graph of ten samples. It takes a few seconds and interrupts nothing.

        Raises RunNotReady for a run that isn't at work, OptionError if no rank answers here.
        """
        from distrain_nb.run.stacks import stacks_of

        return stacks_of(self)

    def carrier_log(self) -> str:
        """Return the log of the background process that submits the job and follows it.

        It says why a call of the service failed, for example: a record a line, as `TIME LEVEL
        PROCESS LOGGER: MESSAGE` in UTC, with tracebacks. Of a long log the end is returned.

        Raises OptionError for a run that has no such process.
        """
        with readable(self.record):
            log = carrier_log.read(self.folder)
        if not log:
            raise OptionError(f"run {self.id} has no background process: it runs on {self._place}")
        return log

    @property
    def links(self) -> dict[str, str]:
        """Where its job and folders are in a cloud, and its pages in experiment trackers, by what
        they are called; empty for others."""
        with readable(self.record):
            tracked = {name: Tracked.read(self.folder, file) for name, file in FILES.items()}
            pages = {name: entry.url for name, entry in tracked.items() if entry and entry.url}
            return {**links.read_links(self.folder), **pages}

    def sdk_job(self) -> Value:
        """Return the object that the cloud's own SDK has for its job, as of now:
        `aiplatform.CustomJob` on Vertex AI, `aiplatform.CustomTrainingJob` with `pipeline`, and on
        SageMaker `sagemaker.core.resources.TrainingJob` (the extra `sagemaker-sdk`).

        Raises RunNotReady before the service has named the job and for a rehearsal, whose service
        has gone; OptionError for a run on this machine; DistrainError where the SDK isn't
        installed, or the service refuses.
        """
        from distrain_nb.backends.remote.sdk import SdkRemoteBackend

        backend = self._backend
        if not isinstance(backend, SdkRemoteBackend):
            raise OptionError(f"run {self.id} has no job of an SDK: it runs on {self._place}")
        try:
            return backend.sdk_job(self.record.handle, self.folder)
        except RunNotReady as error:
            raise RunNotReady(f"run {self.id} has no job of an SDK: {error}") from None

    def metrics(self) -> pd.DataFrame:
        """Return a row for each step, a column for each metric."""
        from distrain_nb.run.metrics.events import table

        return table(self.folder / EVENTS_FOLDER)

    def figure(self, *metrics: str) -> go.Figure:
        """Return the charts of these metrics, or of all, as a figure of plotly, with the lines,
        names and colours of the page.

        Raises OptionError for a metric that there isn't, DistrainError where plotly is missing.
        """
        from distrain_nb.run.charts.figures import figure_of
        from distrain_nb.run.charts.lines import Metrics

        return figure_of(Metrics(self.folder), metrics, f"run {self.id}")

    def resources(self) -> pd.DataFrame:
        """Return what each rank used of the machine: a row for each rank and second of the run.

        Empty for a run that was over at once, and where the machine has no /proc.
        """
        from distrain_nb.run.metrics.events import table

        return table(self.folder / RESOURCES_FOLDER)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What its ranks should have in common and don't, such as weights. Then, from ten measured
        seconds on, what costs much of its time. Each says what to write instead."""
        from distrain_nb.run.metrics.step_findings import findings_of
        from distrain_nb.run.metrics.step_times import step_times

        deviating = [
            Finding(deviation.code, Severity.WARNING, deviation.place, deviation.text)
            for deviation in DeviationReader(self.folder).compare()
        ]
        return (*deviating, *findings_of(step_times(self.folder)))

    @property
    def time_spent(self) -> str:
        """Where the time of a step goes, as `a step takes 20 ms: 61 % computing, …`, or nothing."""
        from distrain_nb.run.metrics.step_findings import sentence_of
        from distrain_nb.run.metrics.step_times import step_times

        return sentence_of(step_times(self.folder))

    def step_times(self) -> pd.DataFrame:
        """Return where the time of each rank goes: a row for each window of steps, with the last
        step, their number (`steps`) and the mean seconds of a step by kind.

        Empty for a program without steps, and where it is turned off.
        """
        from distrain_nb.run.metrics.events import table

        return table(self.folder / EVENTS_FOLDER / STEP_TIMES_FOLDER)

    @property
    def displays(self) -> list[Display]:
        """What its ranks have shown with `plt.show()`, `display` or a last line, in order: `data`
        by MIME type, as the program gave it. Shown in a notebook, nothing of it runs."""
        from distrain_nb.run.displays import displays

        return displays(self.folder)

    def fetch(self) -> Mapping[str, str]:
        """Ask again for what its job left and could not be fetched when it had ended; what is
        still missing, and why. Empty for a run that goes on."""
        if not self.state.final:
            return {}
        with readable(self.record):
            return self._backend.fetch(self.record.handle, self.folder)

    @property
    def results(self) -> Results:
        """What `--result` named, by name: plain data alone where others may have written it. It is
        asked for again if it could not be fetched. A function's run has `result` in it, what the
        function returned on rank 0.

        Raises RunNotReady before the run has ended, and where the results can't be fetched.
        """
        if not self.state.final:
            raise RunNotReady(f"run {self.id} is {self.state}: it has no result yet; wait() for it")
        if missing := self.fetch().get(RESULTS_FOLDER):
            raise RunNotReady(f"the results of run {self.id} can't be fetched: {missing}")
        folder = self.folder / RESULTS_FOLDER
        return Results(folder, self.id, self._backend.here and is_ours(folder), self.unsuccessful())

    def __repr__(self) -> str:
        """Say when a state was so that may still change: a notebook keeps the text."""
        try:
            state, final = str(self.state), self.state.final
        except RunUnreadable:
            state, final = UNREADABLE, True
        when = "" if final else f", as of {clock(time.time())}"
        return f"Run({self.id}, {self.name!r}, on={self.backend!r}, state={state!r}{when})"


def delete(run: Run) -> None:
    """Remove the files of a run that has ended, or that can't be read, and with them the run.

    Raises RunNotReady if it has not ended, StoreError if its files can't be removed.
    """
    if not run.may_be_deleted:
        raise RunNotReady(f"run {run.id} is {run.state}: cancel it first")
    Store(run.folder.parents[1]).delete(run.record)
