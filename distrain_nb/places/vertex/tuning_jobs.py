"""`HyperparameterTuningJob`s, and the trials that they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from distrain_nb.backends.tuning import ServiceTrial
from distrain_nb.places.vertex.jobs import Jobs, readable
from distrain_nb.tuning.spec import Value
from distrain_nb.types import Value as Anything

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.types import HyperparameterTuningJob, Trial

    from distrain_nb.backends.tuning import TrialWord

_STATES: dict[str, TrialWord] = {
    "REQUESTED": "requested",
    "ACTIVE": "running",
    "STOPPING": "stopping",
    "SUCCEEDED": "succeeded",
    "INFEASIBLE": "failed",
}


class TuningJobs(Jobs):
    """`HyperparameterTuningJob`s."""

    kind = "hyperparameter_tuning_job"

    def get(self, job: str) -> HyperparameterTuningJob:
        """Return a job with its trials. Raises what the client raises."""
        answer: HyperparameterTuningJob = self._get(job)
        return answer

    def custom_job(self, job: str) -> str:  # noqa: ARG002
        """Return nothing: each trial has one of its own."""
        return ""


def service_trial(trial: Trial) -> ServiceTrial:
    """Read a trial, with the values of its last measurement as long as there is no final one."""
    measured = trial.final_measurement
    if not measured.metrics and trial.measurements:
        measured = trial.measurements[-1]
    return ServiceTrial(
        number=int(trial.id),
        parameters={
            parameter.parameter_id: cast("Value", parameter.value) for parameter in trial.parameters
        },
        state=_STATES.get(trial.state.name, "requested"),
        job=trial.custom_job,
        goals={metric.metric_id: metric.value for metric in measured.metrics},
        steps=len(trial.measurements) or measured.step_count,
        why=readable(trial.infeasible_reason),
        begin=epoch_seconds(trial.start_time),
        end=epoch_seconds(trial.end_time),
    )


def epoch_seconds(time: Anything) -> float:
    return float(time.timestamp()) if time else 0.0
