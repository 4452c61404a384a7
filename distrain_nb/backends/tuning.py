"""The interface of backends whose services tune, or whose jobs can be trials of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from distrain_nb.worker.metrics.goals import TRIAL_VARIABLE
from distrain_nb.worker.rank.arguments import ARGUMENTS_VARIABLE

if TYPE_CHECKING:
    from distrain_nb.backends.plan import Plan
    from distrain_nb.findings import Finding
    from distrain_nb.tuning.spec import StudySpec, Value
    from distrain_nb.types import Json, Unknown
    from distrain_nb.worker.files.status import Status

# Texts of a plan's job in whose place each trial has its own: its number, its values as arguments
# of the program in JSON, and what makes its run's name its own.
TRIAL, TRIAL_ARGUMENTS, TRIAL_NONCE = "${TRIAL}", "${TRIAL_ARGUMENTS}", "${TRIAL_NONCE}"

# Ends the code of a finding about an option that does nothing without a study.
STUDY_ONLY = ".study-only"

# Where a trial is in its life; the last four are final.
TrialWord: TypeAlias = Literal[
    "requested", "running", "stopping", "succeeded", "stopped", "failed", "cancelled"
]


def trial_variables(trial: str | None) -> dict[str, str]:
    """Return the variables that name a job's trial; none for other jobs."""
    return {} if trial is None else {TRIAL_VARIABLE: trial, ARGUMENTS_VARIABLE: TRIAL_ARGUMENTS}


@dataclass(frozen=True)
class ServiceTrial:
    """A trial as the service shows it.

    `number` counts from 1. `job` is the name of the trial's job, or empty before there is one.
    `goals` are the newest values by metric, at step `steps`. `why` is the reason of a failure or an
    early stop. `begin` and `end` are in seconds since the epoch, or 0.
    """

    number: int
    parameters: Mapping[str, Value]
    state: TrialWord
    job: str = ""
    goals: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0
    why: str = ""
    begin: float = 0.0
    end: float = 0.0


@dataclass(frozen=True)
class ServiceStudy:
    """A study as the service shows it. `created` is in seconds since the epoch."""

    name: str
    created: float
    spec: StudySpec


class StudyPlan(Protocol):
    """The exact request for a study. `str` of a plan is the output of `--dry-run`."""

    @property
    def trial(self) -> Plan:
        """The plan of a trial's job."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Findings about the study, without those about a trial's job."""

    def __str__(self) -> str: ...


class TrialKeeper(Protocol):
    """Keeps the runs of a study's trials, as the study's process reports the trials."""

    def keep(self, trials: Sequence[ServiceTrial]) -> Mapping[int, Path]:
        """Store the service's trials.

        Return the run's folder of each trial that has a job, by number.
        """

    def give_up(self, why: str) -> None:
        """End the runs of trials that have not ended: no more news of them will come."""


@runtime_checkable
class Tunes(Protocol):
    """A backend whose service tunes. `stops_trials`: to stop a trial's run stops the trial."""

    title: str
    stops_trials: bool

    def plan_study(self, plan: Unknown, spec: StudySpec) -> StudyPlan:
        """Return the exact request of a study.

        *plan* is that of a trial's job. Pure. Raises OptionError.
        """

    def submit_study(self, plan: Unknown, folder: Path) -> None:
        """Write everything into the study's folder that `carry_study` needs.

        Nothing is sent.

        Raises CheckFailed if something looks like a secret.
        """

    def carry_study(self, folder: Path, keeper: TrialKeeper) -> None:
        """Carry the study of a folder to its end, also one that was already under way.

        The status of the study and of each trial's run is kept in their folders. Only one process
        may do so at a time.
        """


@dataclass(frozen=True)
class TrialStart:
    """The facts of one trial that its start needs.

    `number` counts from 1. `arguments` are the trial's values as arguments of the program, such as
    `--lr=0.01`. `share` is its share of the place, from `trial_job`. A fork server that starts the
    runs of trials ends after `idle` seconds without one.
    """

    number: int
    arguments: tuple[str, ...]
    share: str | None = None
    idle: float = 600.0


@runtime_checkable
class StartsTrials(Protocol):
    """A backend whose jobs can be trials of a study that is tuned from here.

    Each trial is a run. Remote backends submit them. `adds_trials`: more trials can be added to a
    study that has ended.
    """

    title: str
    here: bool
    adds_trials: bool

    def trial_job(self, job: Unknown, parallel: int) -> tuple[Unknown, tuple[str, ...]]:
        """Return the job that each trial varies, and a share of the place for each parallel trial.

        There are no shares if the place has nothing to divide.
        """

    def write_trials(self, plan: Unknown, folder: Path) -> None:
        """Write everything into the study's folder that `begin_trial` needs, and its status.

        *plan* is the plan of the job that trials vary. Raises DistrainError.
        """

    def begin_trial(self, study: Path, trial: TrialStart, folder: Path) -> None:
        """Start the run of a trial. *folder* has its program. Raises DistrainError."""

    def has_begun(self, folder: Path) -> bool:
        """Return whether a process that has died since has begun a trial's run.

        A run that may still begin is told not to.
        """

    def status(self, handle: Mapping[str, Json], folder: Path) -> Status:
        """Return the status of a trial's run."""

    def end_trials(self, study: Path) -> None:
        """Forget what only future trials need: the study has ended."""
