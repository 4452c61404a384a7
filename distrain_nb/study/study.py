"""A study: a handle on it, alive or over, here or in another notebook."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.backends.plugins import find, title_of
from distrain_nb.backends.remote.lock import carrier_lock
from distrain_nb.errors import DistrainError, OptionError, RunNotFound, RunNotReady, RunUnreadable
from distrain_nb.run.waiting import Ends
from distrain_nb.study.files import (
    STOP_FILE,
    STORAGE_FILE,
    WANTED_FILE,
    WANTED_LOCK,
    StudyFile,
    TrialState,
    readable,
    requested_trials,
    writable,
)
from distrain_nb.study.processes import NOTICES, start_process
from distrain_nb.study.service import service_of
from distrain_nb.study.trial_reader import TrialReader
from distrain_nb.tuning.engine import SearchEngine, open_storage, require
from distrain_nb.tuning.spec import Search, StudySpec
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import State, Status, request_cancel

if TYPE_CHECKING:
    import optuna
    import pandas as pd
    import plotly.graph_objects as go

    from distrain_nb.backends.tuning import Tunes
    from distrain_nb.run import Run
    from distrain_nb.study.trial import StudyTrial

COUNTING_TURN_S = 0.01
START_AGAIN_AFTER_S = 10.0


class Study(Ends):
    """What was started with `tune`. All that it tells is read from disk, so any process may hold
    one; where the process that owns its trials was killed, whoever asks for its state starts
    another."""

    noun, failed_text, cancelled_text = "study", "failed: ", "was stopped"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started_at = 0.0
        self._reader = TrialReader(folder)
        self._front: tuple[tuple[StudyTrial, ...], ...] = (), ()

    @cached_property
    def file(self) -> StudyFile:
        """What it was started with. Raises RunUnreadable."""
        with readable(self.folder):
            return StudyFile.read(self.folder)

    @property
    def id(self) -> int:
        """Its number in the list of studies."""
        return int(self.folder.name)

    @property
    def name(self) -> str:
        """Its name; `study-ID` if its files can't be read."""
        with suppress(RunUnreadable):
            return self.file.name
        return f"study-{self.id}"

    @cached_property
    def spec(self) -> StudySpec:
        """What it tries, what is wanted, and how many trials it began with. Raises
        RunUnreadable."""
        with readable(self.folder):
            return self.file.parsed

    @property
    def requested_trials(self) -> int:
        """How many trials there are to be in all. Raises RunUnreadable."""
        with readable(self.folder):
            return requested_trials(self.folder, self.spec)

    @property
    def status(self) -> Status:
        """State, times and error, as of now. Raises RunUnreadable."""
        with readable(self.folder):
            status = Status.read(self.folder)
        is_lost = not status.state.final and not status.answered_for
        if is_lost and time.monotonic() > self._started_at + START_AGAIN_AFTER_S:
            self._started_at = time.monotonic()
            self._start_process()
        return status

    def all_trials(self) -> tuple[StudyTrial, ...]:
        """Return its trials, in order of their numbers; the same tuple where nothing has changed.
        Raises RunUnreadable."""
        with readable(self.folder):
            return self._reader.read()

    def __getitem__(self, number: int) -> StudyTrial:
        """Return the trial of that number, from 1. Raises KeyError."""
        match = next((trial for trial in self.all_trials() if trial.number == number), None)
        if match is None:
            raise KeyError(f"study {self.id} has no trial {number} yet")
        return match

    @property
    def runs(self) -> list[Run]:
        """The runs of its trials that exist, by the trials' numbers."""
        runs_of_trials = []
        for trial in self.all_trials():
            with suppress(RunNotReady, RunNotFound):
                runs_of_trials.append(trial.run)
        return runs_of_trials

    @property
    def trials(self) -> pd.DataFrame:
        """A row for each trial, by its number: the state, its parameters and goals by their names,
        `steps` that it has reported, `duration` in seconds, and the number of its `run`."""
        import pandas as pd

        spec, all_trials = self.spec, self.all_trials()
        names = list(dict.fromkeys(p.name for p in spec.parameters))
        goals = [goal.metric for goal in spec.goals]
        rows = [trial.row(names, goals) for trial in all_trials]
        columns = ["trial", "state", *names, *goals, "steps", "duration", "run"]
        table: pd.DataFrame = pd.DataFrame(rows, columns=list(dict.fromkeys(columns)))
        by_number: pd.DataFrame = table.set_index("trial")
        return by_number

    @property
    def best(self) -> StudyTrial:
        """The trial with the best value of those that succeeded, or else that were stopped.

        Raises RunNotReady before there is one, OptionError where there are several goals, of which
        `front` has the trials that no other beats.
        """
        if len(self.spec.goals) > 1:
            raise OptionError(f"study {self.id} has several goals: see study.front")
        front = self.front
        if not front:
            raise RunNotReady(f"study {self.id} ({self.state}) has no trial with a value yet")
        return front[0]

    @property
    def front(self) -> list[StudyTrial]:
        """The trials that no other beats in all goals; of one goal the best alone."""
        return list(self.front_of(self.all_trials()))

    def front_of(self, trials: tuple[StudyTrial, ...]) -> tuple[StudyTrial, ...]:
        """Return the Pareto front of these trials, which are all of this study."""
        known_trials, front = self._front
        if known_trials is not trials:
            front = tuple(self._found_front(trials))
            self._front = trials, front
        return front

    def _found_front(self, trials: Sequence[StudyTrial]) -> list[StudyTrial]:
        for state in (TrialState.SUCCEEDED, TrialState.STOPPED):
            candidates = [
                (trial, trial.scores(self.spec)) for trial in trials if trial.state is state
            ]
            scored = [
                (trial, scores) for trial, scores in candidates if all(map(math.isfinite, scores))
            ]
            if scored:
                best = pareto_front([scores for _, scores in scored])
                front = [trial for trial, scores in scored if scores in best]
                return front if len(self.spec.goals) > 1 else front[:1]
        return []

    @property
    def optuna(self) -> optuna.Study:
        """The study as Optuna has it, to look at: its trials count from 0, and what is written
        there changes nothing here. Raises DistrainError where Optuna is missing."""
        require("optuna", "study.optuna")
        import optuna

        if self.on_service:
            return _as_optuna(self)
        path = self.folder / STORAGE_FILE
        if not path.exists():
            raise RunNotReady(f"study {self.id} has no trial yet")
        return optuna.load_study(study_name=self.name, storage=open_storage(path))

    @property
    def figures(self) -> dict[str, go.Figure]:
        """Its charts as figures of plotly, by the names on the page: `loss` by trial, `learning
        curves of loss`, `loss by lr`, `parallel coordinates` and, from eight trials on,
        `importance`.

        Raises RunNotReady before there is a trial, DistrainError where plotly is missing.
        """
        from distrain_nb.study.charts.figures import figures
        from distrain_nb.study.importances import importances
        from distrain_nb.study.summary import summary_of

        summary, shares = summary_of(self), dict[str, float]()
        if not summary.trials:
            raise RunNotReady(f"study {self.id} has no trial yet")
        with suppress(DistrainError):  # without Optuna it has the other charts
            shares = importances(self.spec, summary.trials)
        return figures(summary, shares)

    def cancel(self) -> None:
        """Ask for it and its trials to be stopped; returns at once. Raises StoreError."""
        if not self.state.final:
            with writable(self.folder):
                request_cancel(self.folder)

    @property
    def adds_trials(self) -> bool:
        """Whether more can be wanted than it began with, as far as its backend is installed
        here."""
        with suppress(OptionError):
            backend = find(self.file.backend)
            return self._service is None and bool(getattr(backend, "adds_trials", False))
        return False

    @property
    def on_service(self) -> bool:
        """Whether a service suggests its trials and runs them, as far as its backend is installed
        here."""
        with suppress(OptionError):
            return self._service is not None
        return False

    @property
    def stops_trials(self) -> bool:
        """Whether one trial can be stopped by itself, as far as its backend is installed here."""
        with suppress(OptionError):
            return self._service is None or self._service.stops_trials
        return False

    def stop(self, number: int) -> None:
        """Ask for one trial to be stopped; its value so far counts. Raises KeyError, OptionError
        for one that has ended, StoreError."""
        trial = self[number]
        service = self._service
        if service is not None and not service.stops_trials:
            raise OptionError(f"{service.title} can't stop a single trial, only the whole study")
        if trial.state.final:
            raise OptionError(f"trial {number} of study {self.id} has ended already: {trial.state}")
        if service is not None:
            trial.run.cancel()
        else:
            with writable(self.folder):
                (self.folder / STOP_FILE.format(number)).touch()
        self.status  # noqa: B018 - sees to it that somebody hears

    def more(self, trials: int) -> None:
        """Ask for that many trials more, also of a study that has ended. Raises OptionError,
        StoreError."""
        if not self.adds_trials:
            title = self._service.title if self._service else title_of(self.file.backend)
            raise OptionError(f"{title} can't add trials to a study: start another one with --tune")
        if trials < 1:
            raise OptionError(f"invalid --trials +{trials}: expected 1 or more")
        with writable(self.folder), self._counting():
            self._want_more(trials)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Keep others from changing how many trials are wanted."""
        while True:
            with carrier_lock(self.folder, WANTED_LOCK) as mine:
                if mine:
                    yield
                    return
            time.sleep(COUNTING_TURN_S)

    def _want_more(self, trials: int) -> None:
        cancelled = self.state is State.CANCELLED  # what was still wanted is wanted no more
        count = (len(self.all_trials()) if cancelled else self.requested_trials) + trials
        replace_file(self.folder / WANTED_FILE, str(count).encode())
        if self.state.final:
            (self.folder / CANCEL_FILE).unlink(missing_ok=True)
            Status.read(self.folder).enter(
                State.STARTING, "starting", supervisor=None, error=""
            ).write(self.folder)
            self._start_process()
            if self.file.notify:
                from distrain_nb.api.submission import start_notifier  # takes long to import

                start_notifier(self.folder, self.file.notify, NOTICES)

    @cached_property
    def _service(self) -> Tunes | None:
        """What its trials are suggested and run by; None where that is this machine. Raises
        OptionError."""
        return service_of(self.file.backend)

    def _start_process(self) -> None:
        """Use the interpreter that it was started with: a server's may lack trials' packages."""
        python = self.file.python
        start_process(self.folder, python if python and Path(python).exists() else sys.executable)

    def __repr__(self) -> str:
        try:
            return f"Study({self.id}, {self.name!r}, state={str(self.state)!r})"
        except DistrainError:
            return f"Study({self.folder.name}, unreadable)"


def pareto_front(scores: Iterable[tuple[float, ...]]) -> set[tuple[float, ...]]:
    """Return those of which no other is as good in all, and better in one: larger is better."""
    several = set(scores)
    if not several or len(next(iter(several))) == 1:
        return {max(several)} if several else set()
    ordered = sorted(several, reverse=True)  # nothing is beaten by what comes after it
    if len(ordered[0]) == 2:
        highest = itertools.accumulate((second for _, second in ordered), max, initial=-math.inf)
        return {pair for pair, above in zip(ordered, highest, strict=False) if pair[1] > above}
    front = np.empty((len(ordered), len(ordered[0])))
    count = 0
    for pair in ordered:
        if not (front[:count] >= pair).all(axis=1).any():
            front[count] = pair
            count += 1
    return set(map(tuple, front[:count].tolist()))


def _as_optuna(study: Study) -> optuna.Study:
    """Made of what a service says of the trials."""
    spec = replace(study.spec, search=Search("random"))
    goals = [goal.metric for goal in spec.goals]
    outcomes = [(trial.params, trial.outcome(goals)) for trial in study.all_trials()]
    return SearchEngine(spec, outcomes, name=study.name).study
