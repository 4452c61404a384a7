"""A tuning job on its way: its trials are training jobs."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from distrain_nb.places.sagemaker.forms.study import from_tuning_config
from distrain_nb.places.sagemaker.stand_in.refusals import INTERNAL
from distrain_nb.places.sagemaker.stand_in.tuning_checks import definition_of, most_epochs
from distrain_nb.rehearsal.tuning_thread import TuningThread
from distrain_nb.tuning.engine import Ending, Outcome, SearchEngine
from distrain_nb.tuning.loop import COUNTED
from distrain_nb.tuning.reports import Row
from distrain_nb.tuning.spec import HyperbandStopping, Search, Value

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.stand_in.execution import TrainingJobExecution
    from distrain_nb.places.sagemaker.stand_in.jobs import TrainingJobService

_log = logging.getLogger(__name__)

_ALL_FAILED = "All training jobs failed. Please investigate your algorithm and its hyperparameters."
OVER = ("Completed", "Failed", "Stopped")
_SUMMARY = (
    "TrainingJobName",
    "TrainingJobArn",
    "CreationTime",
    "TrainingStartTime",
    "TrainingEndTime",
    "TrainingJobStatus",
    "FailureReason",
)
# What the definition of the trials' job has in other words than a training job's request.
_OTHERS = ("StaticHyperParameters", "DefinitionName")


@dataclass(frozen=True)
class TuningTrial:
    """A trial with these values, and its training job."""

    number: int
    values: Mapping[str, Value]
    execution: TrainingJobExecution
    objective: Mapping[str, str]
    begin: float

    @property
    def status(self) -> str:
        return str(self.execution.job.record.description()["TrainingJobStatus"])

    def reported(self) -> list[float]:
        """Return the values of the objective so far."""
        values = self.execution.job.record.values(self.objective["MetricName"])
        return [value for value in values if math.isfinite(value)]

    def summary(self, tuning_job: str) -> dict[str, Any]:
        """Describe the trial as `ListTrainingJobsForHyperParameterTuningJob` does."""
        description = self.execution.job.record.description()
        fields = {name: description[name] for name in _SUMMARY if name in description}
        fields["TuningJobName"] = tuning_job
        fields["TunedHyperParameters"] = as_hyperparameters(self.values)
        over, values = description["TrainingJobStatus"] in OVER, self.reported()
        failed = description["TrainingJobStatus"] == "Failed" or not values
        fields["ObjectiveStatus"] = ("Failed" if failed else "Succeeded") if over else "Pending"
        if values and not (over and failed):
            fields["FinalHyperParameterTuningJobObjectiveMetric"] = {
                **self.objective,
                "Value": values[-1],
            }
        return fields


class TuningJob(TuningThread[TuningTrial]):
    """A tuning job from its start to its end, whose trials are training jobs.

    `earlier` are the trials of the jobs that it starts from.
    """

    internal = INTERNAL

    def __init__(
        self,
        arn: str,
        request: Mapping[str, Any],
        jobs: TrainingJobService,
        earlier: Sequence[tuple[Mapping[str, Value], Outcome]] = (),
    ) -> None:
        self.arn, self.request = arn, request
        self.status, self.reason = "InProgress", ""
        self.created = self.changed = time.time()
        self.ended = 0.0
        self._jobs = jobs
        self._config = request["HyperParameterTuningJobConfig"]
        self._definition = definition_of(request)
        spec = from_tuning_config(self._config).spec
        hyperband = isinstance(spec.stopping, HyperbandStopping)
        search = Search("random", spec.search.seed) if hyperband else spec.search
        engine = SearchEngine(spec.edited(search=search), earlier)
        name = str(request["HyperParameterTuningJobName"])
        super().__init__(name, spec, engine, len(earlier))

    @property
    def objective(self) -> Mapping[str, str]:
        goal: Mapping[str, str] = self._config["HyperParameterTuningJobObjective"]
        return goal

    @property
    def sign(self) -> float:
        """The factor with which larger values are better."""
        return 1.0 if self.objective["Type"] == "Maximize" else -1.0

    def cancel(self) -> str:
        """Have it stopped soon, with its trials. Returns the status that it had."""
        status = self.status
        if status == "InProgress":
            self._enter("Stopping")
            self.cancelled.set()
        return status

    def best(self) -> TuningTrial | None:
        """Return the trial with the best value of those that have come to their end."""
        succeeded = self.with_ending("succeeded")
        return max(succeeded, key=lambda trial: self.sign * trial.reported()[-1], default=None)

    def begin(self, number: int, values: Mapping[str, Value]) -> None:
        goal, region = self.objective["MetricName"], self.arn.split(":")[3]
        name = f"{self.name}-{number:03d}-{secrets.token_hex(4)}"
        job_request = training_job(
            self._definition, name, self.arn, as_hyperparameters(values), goal
        )
        job_request["Tags"] = self.request.get("Tags", [])
        execution = self._jobs.start(region, job_request)
        self.changed = time.time()
        self.trials[number] = TuningTrial(number, values, execution, self.objective, self.changed)

    def look(self, trial: TuningTrial) -> bool:
        if trial.status in OVER:
            self.conclude(trial)
        return True

    def stop(self, trial: TuningTrial, why: str) -> None:
        _log.info("trial %s is stopped: %s", trial.number, why or "the tuning job ends")
        trial.execution.cancel()

    def ending(self, trial: TuningTrial) -> Ending:
        if trial.status == "Failed" or not trial.reported():
            return "failed"
        return "succeeded" if trial.status == "Completed" else "stopped"

    def rows(self, trial: TuningTrial) -> list[Row]:
        return [(number, 0.0, value) for number, value in enumerate(trial.reported(), 1)]

    def values(self, trial: TuningTrial) -> tuple[float, ...]:
        return (trial.reported()[-1],)

    def reason_to_stop(self, trial: TuningTrial) -> str:
        if not isinstance(self.spec.stopping, HyperbandStopping):
            return super().reason_to_stop(trial)
        reported = trial.reported()
        others = [other.reported() for other in self.trials.values() if other is not trial]
        least = self.spec.stopping.min_steps or 1
        most = most_epochs(self._config, self._definition) or len(reported) + 1
        behind = falls_behind(reported, others, least, most, self.sign)
        return "Hyperband gives it no more steps" if behind else ""

    def decide(self) -> bool:
        longest = self.spec.end.max_duration
        if self.cancelled.is_set() or (longest and time.time() - self.created >= longest):
            return True
        criteria = self._config.get("TuningJobCompletionCriteria", {})
        values = [self.sign * self.values(trial)[0] for trial in self.with_ending(*COUNTED)]
        target = criteria.get("TargetObjectiveMetricValue")
        if target is not None and values and max(values) >= self.sign * target:
            return True
        patience = criteria.get("BestObjectiveNotImproving", {})
        most = patience.get("MaxNumberOfTrainingJobsNotImproving")
        return bool(most and values and len(values) - values.index(max(values)) > most)

    def finish(self, end: Literal["succeeded", "failed", "cancelled"], reason: str = "") -> None:
        if end == "failed":
            self.reason = reason or _ALL_FAILED
        self._enter({"succeeded": "Completed", "failed": "Failed", "cancelled": "Stopped"}[end])

    def _enter(self, status: str) -> None:
        self.changed = time.time()
        if status in OVER:
            self.ended = self.changed
        _log.info("%s: %s %s", self.arn, status, self.reason)
        self.status = status


def as_hyperparameters(values: Mapping[str, Value]) -> dict[str, str]:
    """Return values as hyperparameters, which are texts."""
    return {name: v if isinstance(v, str) else repr(v) for name, v in values.items()}


def training_job(
    definition: Mapping[str, Any], name: str, tuning_job: str, values: Mapping[str, str], goal: str
) -> dict[str, Any]:
    """Return the request of a trial's job; `tuning_job` is the ARN of the one that starts it."""
    fixed = definition.get("StaticHyperParameters", {})
    return {
        **{key: value for key, value in definition.items() if key not in _OTHERS},
        "TrainingJobName": name,
        "TuningJobArn": tuning_job,
        "HyperParameters": {**fixed, **values, "_tuning_objective_metric": goal},
    }


def falls_behind(
    reported: Sequence[float], curves: Sequence[Sequence[float]], least: int, most: int, sign: float
) -> bool:
    """Tell whether Hyperband stops a trial. At `least` values, at three times as many and so on the
    best third goes on of those that have come so far; at `most` values a trial ends."""
    if len(reported) >= most:
        return True
    rung = least
    while rung <= len(reported):
        at_rung = [_best(curve[:rung], sign) for curve in curves if len(curve) >= rung]
        better = sum(best > _best(reported[:rung], sign) for best in at_rung)
        if better >= math.ceil((len(at_rung) + 1) / 3):
            return True
        rung *= 3
    return False


def _best(values: Sequence[float], sign: float) -> float:
    return max(sign * value for value in values)
