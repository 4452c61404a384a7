"""One trial of a tuning job: the training job that it is, and what the service says of it."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distrain_nb.tuning.engine import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from distrain_nb.places.sagemaker.stand_in.attempt import TrainingJob
    from distrain_nb.tuning.spec import Value

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
    job: TrainingJob
    objective: Mapping[str, str]

    @property
    def status(self) -> str:
        return str(self.job.record.description()["TrainingJobStatus"])

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    def reported(self) -> list[float]:
        """Return the values of the objective so far."""
        values = self.job.record.values(self.objective["MetricName"])
        return [value for value in values if math.isfinite(value)]

    def curve(self) -> NDArray[np.float64]:
        """Return the values by their numbers, of shape (n, 2)."""
        return np.array(list(enumerate(self.reported(), 1)), dtype=np.float64).reshape(-1, 2)

    def outcome(self) -> Outcome:
        """Return the trial's outcome for the search engine."""
        values, status = self.reported(), self.status
        if status not in OVER:
            return Outcome("running")
        if status == "Failed" or not values:
            return Outcome("failed")
        points = tuple(enumerate(values, 1))
        return Outcome("succeeded" if status == "Completed" else "stopped", (values[-1],), points)

    def summary(self, tuning_job: str) -> dict[str, Any]:
        """Describe the trial as `ListTrainingJobsForHyperParameterTuningJob` does."""
        description = self.job.record.description()
        fields = {name: description[name] for name in _SUMMARY if name in description}
        fields["TuningJobName"] = tuning_job
        fields["TunedHyperParameters"] = written(self.values)
        over, values = description["TrainingJobStatus"] in OVER, self.reported()
        failed = description["TrainingJobStatus"] == "Failed" or not values
        fields["ObjectiveStatus"] = ("Failed" if failed else "Succeeded") if over else "Pending"
        if values and not (over and failed):
            fields["FinalHyperParameterTuningJobObjectiveMetric"] = {
                **self.objective,
                "Value": values[-1],
            }
        return fields


def written(values: Mapping[str, Value]) -> dict[str, str]:
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


def job_name(tuning_job: str, number: int) -> str:
    """Make the name of a trial's job, in the service's form."""
    return f"{tuning_job}-{number:03d}-{secrets.token_hex(4)}"


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
