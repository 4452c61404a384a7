"""One tuning job on its way: trials are suggested, started, stopped early, and counted."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from distrain_nb.places.sagemaker.forms.study import from_tuning_config
from distrain_nb.places.sagemaker.stand_in.tuning_checks import definition_of, most_epochs
from distrain_nb.places.sagemaker.stand_in.tuning_trial import (
    TuningTrial,
    falls_behind,
    job_name,
    training_job,
    written,
)
from distrain_nb.tuning.engine import SearchEngine
from distrain_nb.tuning.spec import HyperbandStopping, MedianStopping, Search
from distrain_nb.tuning.stopping import reason_to_stop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from distrain_nb.places.sagemaker.stand_in.jobs import TrainingJobService
    from distrain_nb.tuning.engine import Outcome
    from distrain_nb.tuning.spec import Value

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.2
_OVER = ("Completed", "Failed", "Stopped")
_ALL_FAILED = "All training jobs failed. Please investigate your algorithm and its hyperparameters."


class TuningJob:
    """A tuning job from its start to its end, on a thread of its own.

    `known` are the trials of the jobs that it starts from.
    """

    def __init__(
        self,
        arn: str,
        request: Mapping[str, Any],
        jobs: TrainingJobService,
        earlier: Sequence[tuple[Mapping[str, Value], Outcome]] = (),
    ) -> None:
        self.arn, self.request = arn, request
        self.name = str(request["HyperParameterTuningJobName"])
        self.status, self.reason = "InProgress", ""
        self.created = self.changed = time.time()
        self.ended = 0.0
        self.trials: list[TuningTrial] = []
        self._jobs = jobs
        self._config = request["HyperParameterTuningJobConfig"]
        self._definition = definition_of(request)
        self._spec = from_tuning_config(self._config).spec
        self._earlier = list(earlier)
        self._reported: set[int] = set()
        self._exhausted = False
        self._stopped, self._abandoned = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    @property
    def objective(self) -> Mapping[str, str]:
        goal: Mapping[str, str] = self._config["HyperParameterTuningJobObjective"]
        return goal

    @property
    def sign(self) -> float:
        """With which larger values are better."""
        return 1.0 if self.objective["Type"] == "Maximize" else -1.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> str:
        """Have it stopped soon, with its trials. Returns the status that it had."""
        status = self.status
        if status == "InProgress":
            self._enter("Stopping")
            self._stopped.set()
        return status

    def abandon(self) -> None:
        """Look after it no more: its trials are for others to end."""
        self._abandoned.set()
        self._thread.join()

    def best(self) -> TuningTrial | None:
        """Return the trial with the best value of those that have come to their end."""
        ended = [trial for trial in list(self.trials) if trial.outcome().ending == "succeeded"]
        return max(ended, key=lambda trial: self.sign * trial.reported()[-1], default=None)

    def _run(self) -> None:
        try:
            self._tune()
        except Exception as error:  # whatever it was, the job must not seem to run for ever
            _log.exception("the tuning job %s can't go on", self.name)
            self.reason = f"InternalServerError: {error!r}"
            for trial in self.trials:
                self._jobs.end(trial.job)
            self._enter("Failed")

    def _tune(self) -> None:
        hyperband = isinstance(self._spec.stopping, HyperbandStopping)
        search = Search("random", self._spec.search.seed) if hyperband else self._spec.search
        engine = SearchEngine(self._spec.edited(search=search), self._earlier)
        while not self._abandoned.wait(_LOOK_EVERY_S):
            active = self._look(engine)
            complete = self._is_complete(active)
            if self._stopped.is_set() or complete:
                for trial in active:
                    self._jobs.end(trial.job)
            else:
                begun = len(active) < self._spec.parallel and self._begin(engine)
                active += self.trials[-1:] if begun else []
            if not active and (complete or self._exhausted or self._stopped.is_set()):
                self._end()
                return

    def _look(self, engine: SearchEngine) -> list[TuningTrial]:
        """Return the trials that go on; the engine is told of those that have ended."""
        active = []
        for trial in self.trials:
            if not trial.is_over:
                active.append(trial)
                if self._is_hopeless(trial):
                    self._jobs.end(trial.job)
            elif trial.number not in self._reported:
                self._reported.add(trial.number)
                engine.tell(len(self._earlier) + trial.number, trial.outcome())
        return active

    def _begin(self, engine: SearchEngine) -> bool:
        """Start one more trial, if there is one to start."""
        if self._exhausted:
            return False
        limit = self._config["ResourceLimits"].get("MaxNumberOfTrainingJobs")
        values = None if len(self.trials) == limit else engine.ask()
        if values is None:
            self._exhausted = True
            return False
        number = len(self.trials) + 1
        goal, region = self.objective["MetricName"], self.arn.split(":")[3]
        name = job_name(self.name, number)
        job_request = training_job(self._definition, name, self.arn, written(values), goal)
        job_request["Tags"] = self.request.get("Tags", [])
        job = self._jobs.start(region, job_request)
        self.trials.append(TuningTrial(number, values, job, self.objective))
        self.changed = time.time()
        return True

    def _is_hopeless(self, trial: TuningTrial) -> bool:
        """Return whether it is to be stopped before its time."""
        rule, values_so_far = self._spec.stopping, trial.reported()
        trials = [candidate for candidate in self.trials if candidate is not trial]
        if isinstance(rule, MedianStopping):
            ended = [e.curve() for e in trials if e.outcome().ending in ("succeeded", "stopped")]
            direction = self._spec.goals[0].direction
            return bool(reason_to_stop(rule, direction, trial.curve(), ended))
        if isinstance(rule, HyperbandStopping):
            most = most_epochs(self._config, self._definition) or len(values_so_far) + 1
            values_of_others = [sibling.reported() for sibling in trials]
            return falls_behind(
                values_so_far, values_of_others, rule.min_steps or 1, most, self.sign
            )
        return False

    def _is_complete(self, active: Sequence[TuningTrial]) -> bool:
        """Return whether it ends before it has all its trials."""
        longest = self._config["ResourceLimits"].get("MaxRuntimeInSeconds")
        if longest and time.time() - self.created >= longest:
            return True
        criteria = self._config.get("TuningJobCompletionCriteria", {})
        ended = [t for t in self.trials if t not in active and t.outcome().values]
        values = [self.sign * t.outcome().values[0] for t in ended]
        target = criteria.get("TargetObjectiveMetricValue")
        if target is not None and values and max(values) >= self.sign * target:
            return True
        patience = criteria.get("BestObjectiveNotImproving", {})
        most = patience.get("MaxNumberOfTrainingJobsNotImproving")
        return bool(most and values and len(values) - values.index(max(values)) > most)

    def _end(self) -> None:
        if self._stopped.is_set():
            self._enter("Stopped")
        elif any(trial.outcome().values for trial in self.trials):
            self._enter("Completed")
        else:
            self.reason = _ALL_FAILED
            self._enter("Failed")

    def _enter(self, status: str) -> None:
        self.changed = time.time()
        if status in _OVER:
            self.ended = self.changed
        _log.info("%s: %s %s", self.arn, status, self.reason)
        self.status = status
