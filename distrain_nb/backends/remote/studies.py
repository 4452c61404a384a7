"""Studies that a service tunes: the study's process carries its folder as a carrier does a run's.

Each trial that the service lists is a run, whose job a thread of that process follows, as a carrier
of the run's own does where the process is gone.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote.backend import AnyRemoteBackend, RemoteBackend
from distrain_nb.backends.remote.carried import CarriedRun, error_line
from distrain_nb.backends.remote.carrier import Carrier, carry, give_up
from distrain_nb.backends.remote.options import RemoteOptionsT
from distrain_nb.backends.remote.plan import RemotePlan, RemotePlanT
from distrain_nb.backends.remote.rehearsal_step import RehearsalStep
from distrain_nb.backends.remote.rehearsed import rehearse, wait_for_tracker
from distrain_nb.backends.remote.sending import Cancelled, send
from distrain_nb.backends.remote.service import TuningService
from distrain_nb.backends.remote.submission import Spec, Submission, follow
from distrain_nb.backends.remote.tracker import MLFLOW_RUN, mlflow_variable
from distrain_nb.backends.remote.variables import delete_variables
from distrain_nb.backends.tuning import ServiceTrial, StudyPlan, TrialKeeper
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.folder import SUBMISSION_FILE
from distrain_nb.worker.files.status import Progress, State, Status

if TYPE_CHECKING:
    from distrain_nb.tuning.spec import StudySpec

REHEARSAL_GONE = "its rehearsal has ended with the process that ran it"
UNHEARD = "the study has ended without a word of it"
AGAIN_AFTER_S = 10.0  # a trial that nobody follows any more is followed again
MOST_ATTEMPTS = 3  # to follow a trial of a study that has ended

_log = logging.getLogger(__name__)


class RemoteStudyPlan(StudyPlan, Protocol):
    """The plan of a study on a service."""

    @property
    def trial(self) -> RemotePlan: ...

    def spec(self) -> Spec:
        """Return the facts of the tuning job that `service` needs."""


class TuningBackend(RemoteBackend[RemoteOptionsT, RemotePlanT]):
    """A remote backend whose service tunes, see `backends.tuning.Tunes`. Of a spec that says
    `study`, its `service` is a `TuningService`."""

    stops_trials: ClassVar[bool] = False

    @abstractmethod
    def plan_study(self, plan: RemotePlanT, spec: StudySpec) -> RemoteStudyPlan: ...

    def submit_study(self, plan: RemoteStudyPlan, folder: Path) -> None:
        """Raise CheckFailed, OptionError as `submit` does."""
        variables = {MLFLOW_RUN: mlflow_variable(folder, study=True)}
        self._write(cast("RemotePlanT", plan.trial), plan.spec(), folder, variables)

    def carry_study(self, folder: Path, keeper: TrialKeeper) -> None:
        """Return when the study has ended, or can't go on."""
        submission = Submission.read(folder)
        if submission.rehearse is None:
            return carry_study(folder, keeper)
        status = Status.read(folder)
        if status.supervisor is not None:  # of a process before this one
            keeper.give_up(REHEARSAL_GONE)
            return status.enter(State.FAILED, str(State.FAILED), error=REHEARSAL_GONE).write(folder)
        return rehearse(folder, submission, partial(carry_study, folder, keeper))


def carry_study(
    folder: Path,
    keeper: TrialKeeper,
    endpoints: Mapping[str, str] | None = None,
    doing: RehearsalStep | None = None,
) -> None:
    """Carry the study of that folder to its end; `endpoints` and `doing` are as in `carry`."""
    run = CarriedRun(folder)
    submission = Submission.read(folder)
    try:
        backend = cast("AnyRemoteBackend", find(submission.backend))
        run.pace = backend.pace.of(endpoints or {})
        service_ = backend.service(submission.spec, endpoints or {}, folder)
        service = cast("TuningService", service_)
        carrier = StudyCarrier(run, submission, service, doing, keeper, endpoints or {})
        carrier.run()
        if submission.rehearse is not None:
            wait_for_tracker(carrier.folders)
    except Cancelled:
        run.end(State.CANCELLED)
    except Exception as error:
        give_up(run, error, submission.rehearse is not None)
    if run.over:
        keeper.give_up(UNHEARD)


class StudyCarrier(Carrier):
    """One study on its way, and the runs of its trials."""

    _service: TuningService

    def __init__(
        self,
        run: CarriedRun,
        submission: Submission,
        service: TuningService,
        doing: RehearsalStep | None,
        keeper: TrialKeeper,
        endpoints: Mapping[str, str],
    ) -> None:
        super().__init__(run, submission, service, doing)
        self._keeper = keeper
        self._endpoints = endpoints
        self._folders: Mapping[int, Path] = {}
        self._followers: dict[int, threading.Thread] = {}
        self._begun_at: dict[int, float] = {}
        self._attempts: Counter[int] = Counter()

    def run(self) -> None:
        """Whatever is not yet done: stage, create, follow, see all trials to their end."""
        run = self._run
        run.kernel = self._submission.kernel
        run.take(())
        send(run, self._service)
        delete_variables(run.folder)
        observed = self._follow(("ask for the trials", self._look_at_trials))
        missing = self._last_look()
        self._keeper.give_up(UNHEARD)
        run.end(observed.state, observed.error, missing)

    @property
    def folders(self) -> Collection[Path]:
        """Return the folders of its trials' runs."""
        return self._folders.values()

    def _look_at_trials(self) -> None:
        trials = self._service.trials(self._run.journal.job)
        self._folders = self._keeper.keep(trials)
        for trial in trials:
            if trial.number in self._folders:
                self._see_to(trial, self._folders[trial.number])

    def _see_to(self, trial: ServiceTrial, folder: Path) -> None:
        """Have a trial's run followed, if nobody does."""
        if not (folder / SUBMISSION_FILE).exists():
            service_ = self._service.trial_spec(self._run.journal.job, trial)
            spec = replace(service_, job=trial.job)
            follow(replace(self._submission, spec=asdict(spec), kernel=None), folder)
        number, now = trial.number, time.monotonic()
        if self._is_followed(number) or _is_over(folder):
            return
        if now < self._begun_at.get(number, -AGAIN_AFTER_S) + AGAIN_AFTER_S:
            return
        self._begun_at[number] = now
        self._attempts[number] += 1
        follower = threading.Thread(target=carry, args=(folder, self._endpoints), daemon=True)
        self._followers[number] = follower
        follower.start()

    def _last_look(self) -> str:
        """Ask for the trials until a look finds that all their runs had ended before it; gives
        what could not be asked for, in words."""
        run, until = self._run, time.monotonic() + self._run.pace.fetch
        self._attempts.clear()
        run.show(Progress("waiting for the last trials"))
        while True:
            settled, trouble = not self._any_pending(), ""
            try:
                self._look_at_trials()
            except Exception as error:
                trouble = f"can't ask for the trials: {error_line(error)}"
                _log.warning("%s", trouble, exc_info=error)
            late = time.monotonic() > until
            if settled and not self._any_pending() and (late or not trouble):
                return trouble
            run.rest(run.pace.look)

    def _any_pending(self) -> bool:
        return any(map(self._is_pending, self._folders))

    def _is_pending(self, number: int) -> bool:
        """Return whether a trial's run is followed, or worth another attempt."""
        if self._is_followed(number):
            return True
        return not _is_over(self._folders[number]) and self._attempts[number] < MOST_ATTEMPTS

    def _is_followed(self, number: int) -> bool:
        return number in self._followers and self._followers[number].is_alive()


def _is_over(folder: Path) -> bool:
    """Return whether the run of a folder has ended, or is not there any more."""
    try:
        return Status.read(folder).state.final
    except (OSError, Damaged):
        return True
