"""The plan of a study on SageMaker: its request, and what a tuning job can't be, or won't do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.names import short_name
from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.findings import Finding, Severity
from distrain_nb.places.sagemaker import options
from distrain_nb.places.sagemaker.limits import limit_findings
from distrain_nb.places.sagemaker.names import RUN
from distrain_nb.places.sagemaker.tuning_request import LONGEST_NAME, study_name, tuning_request
from distrain_nb.tuning.spec import HyperbandStopping, StudySpec
from distrain_nb.types import JsonObject

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.plan import SageMakerPlan, SageMakerSpec

_OPERATION = "CreateHyperParameterTuningJob"
_SECONDS = 11  # signs that a shell puts behind a name

# Of these the service takes the most epochs that a trial may run for.
_EPOCHS = ("epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs")


@dataclass(frozen=True)
class SageMakerStudyPlan:
    """`request` is a `CreateHyperParameterTuningJob` in JSON, with the stand-ins that the request
    of a `trial` has."""

    trial: SageMakerPlan
    request: JsonObject = field(repr=False)
    findings: tuple[Finding, ...]

    def spec(self) -> SageMakerSpec:
        """Return the facts that a service needs later."""
        run = study_name(self.trial.job)
        request = fill_placeholders(self.request, {RUN: run})
        return replace(self.trial.spec(), run=run, study=True, request=dict(request))

    def __str__(self) -> str:
        """Return the request in the command that sends it, for a shell of its own."""
        name = short_name(self.trial.job.name)[: LONGEST_NAME - _SECONDS].strip("-")
        return self.trial.command("create-hyper-parameter-tuning-job", self.request, name)


def plan_study(trial: SageMakerPlan, spec: StudySpec) -> SageMakerStudyPlan:
    """Plan a study; the same study always has the same plan. Raises OptionError."""
    request = tuning_request(trial.job, trial.stored_request(), spec)
    wide = limit_findings(fill_placeholders(request, {RUN: "r" * LONGEST_NAME}), _OPERATION)
    findings = (*_findings(trial, spec), *(item for item in wide if item not in trial.findings))
    return SageMakerStudyPlan(trial, request, findings)


def _findings(trial: SageMakerPlan, spec: StudySpec) -> Iterator[Finding]:
    """Yield what a tuning job can't be, or won't do."""
    job_options = trial.job.options
    if trial.start.delivery is Delivery.FILES:
        message = (
            "a tuning job starts an image by its entry point, and that of --image doesn't start "
            "this program: give the image as --base, and a new one is built on it"
        )
        yield _error("study-image", "image", message)
    if job_options.web_access:
        yield _error("study-access", "web_access", "tuning jobs have no shell in their trials")
    if job_options.check_machines:
        message = "tuning jobs don't test the machines of their trials"
        yield _error("study-machines", "check_machines", message)
    fixed = options.hyperparameters(job_options.hyperparameter)
    for name in dict.fromkeys(p.name for p in spec.parameters if p.name in fixed):
        message = f"--hyperparameter {name}: trials give {name} its values, by --tune"
        yield _error("study-hyperparameter", "hyperparameter", message)
    endless = isinstance(spec.stopping, HyperbandStopping) and spec.stopping.max_steps is None
    if endless and not any(name in fixed for name in _EPOCHS):
        message = (
            "hyperband needs to know how many steps a whole trial has: --stop "
            "hyperband,max-steps=N, or --hyperparameter epochs=N"
        )
        yield _error("study-hyperband", "stop", message)


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(f"sagemaker.{code}", Severity.ERROR, where, message)
