"""What a backend brings whose service tunes: it suggests the trials of a study and runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from distrain_nb.worker.metrics.goals import TRIAL_VARIABLE
from distrain_nb.worker.rank.arguments import ARGUMENTS_VARIABLE

if TYPE_CHECKING:
    from distrain_nb.backends.base import Plan
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
    """What a service says of a trial.

    Its number counts from 1. `job` is the name of the job that runs it, empty before there is one;
    `goals` are its values by metric, so far or at last, at step `steps`; `why` says why it failed
    or was stopped. `begin` and `end` are in seconds since the epoch, 0 where there was none.
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
    """What a service says of a study that it tunes: its name, when it was begun (seconds since the
    epoch), and what it tries."""

    name: str
    created: float
    spec: StudySpec


class StudyPlan(Protocol):
    """What would be sent for a study, whole: `str` of it is what `--dry-run` shows."""

    @property
    def trial(self) -> Plan:
        """The job of any trial."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What is known of the study there, besides those of a trial's job."""

    def __str__(self) -> str: ...


class TrialKeeper(Protocol):
    """Who keeps a study's trials, as the process that carries it tells of them."""

    def keep(self, trials: Sequence[ServiceTrial]) -> Mapping[int, Path]:
        """Write down what the service says of all its trials; the folder of each trial's run, by
        its number, where it has a job."""

    def give_up(self, why: str) -> None:
        """Nobody will hear of trials that have not ended."""


@runtime_checkable
class Tunes(Protocol):
    """What a backend has besides whose service tunes.

    `stops_trials`: one trial can be stopped by stopping its run.
    """

    title: str
    stops_trials: bool

    def plan_study(self, plan: Unknown, spec: StudySpec) -> StudyPlan:
        """Return the exact request of a study, whose trials' job is planned so. Pure. Raises
        OptionError."""

    def submit_study(self, plan: Unknown, folder: Path) -> None:
        """Write into the study's folder all that `carry_study` needs; nothing is sent. Raises
        CheckFailed for what looks like a secret."""

    def carry_study(self, folder: Path, keeper: TrialKeeper) -> None:
        """Carry the study of that folder to its end, or go on with it; its status, and those of
        its trials' runs, are kept in their folders. One process does so at a time."""


@dataclass(frozen=True)
class TrialStart:
    """What a trial has of its own: its number from 1, its values as arguments of the program, such
    as `--lr=0.01`, and its share of the place, as `trial_job` gave it; a fork server that starts
    runs for it ends after `idle` seconds without one."""

    number: int
    arguments: tuple[str, ...]
    share: str | None = None
    idle: float = 600.0


@runtime_checkable
class StartsTrials(Protocol):
    """What a backend brings whose jobs can be the trials of a study that is tuned from here: each
    trial is a run. Remote backends submit them.

    `adds_trials`: more can be wanted of a study that has ended.
    """

    title: str
    here: bool
    adds_trials: bool

    def trial_job(self, job: Unknown, parallel: int) -> tuple[Unknown, tuple[str, ...]]:
        """Return the job that each trial varies, `parallel` of them at once, and the share that
        each of these has of the place; no shares where there is nothing to share out."""

    def write_trials(self, plan: Unknown, folder: Path) -> None:
        """Write into the study's folder all that `begin_trial` needs, of the plan of that job; its
        status too. Raises DistrainError for what can't be."""

    def begin_trial(self, study: Path, trial: TrialStart, folder: Path) -> None:
        """Start the run of a trial, whose folder has its program. Raises DistrainError where it
        can't be started."""

    def has_begun(self, folder: Path) -> bool:
        """Return whether the run of a trial was begun, by a process that has died since. One that
        may just be on its way is told not to begin."""

    def status(self, handle: Mapping[str, Json], folder: Path) -> Status:
        """Return how the run of a trial is doing."""

    def end_trials(self, study: Path) -> None:
        """Forget what only trials to come would need: the study has ended."""
