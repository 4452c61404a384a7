"""A run of MLflow: looked up by our key or created, and kept up to date.

MLflow's own client does this, so every address works that it knows: a server, a database, and what
plugins add, such as sagemaker-mlflow for ARNs. Limits are those of MLflow 2.14 to 3.18.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.tracking.tracker import Sample, causes
from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import PARENT_TAG, Tracked

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

    from distrain_nb.tracking.request import TrackingRequest

KEY_TAG = "distrain.key"
DEFAULT = "Default"  # the experiment of runs that are filed under none

_MOST_METRICS, _MOST_PARAMETERS = 1000, 100
_LONGEST_NAME, _LONGEST_PARAMETER, _LONGEST_TAG = 250, 6000, 5000
_LARGEST = 1.7976931348623157e308  # what databases have in the place of infinity
_ODD = re.compile(r"[^\w.\- :/]", re.ASCII)


STATUSES = {State.SUCCEEDED: "FINISHED", State.FAILED: "FAILED", State.CANCELLED: "KILLED"}


class MlflowTracker:
    """Whatever MLflow's client finds at an address."""

    def __init__(self, uri: str) -> None:
        from mlflow import MlflowClient

        self._client = MlflowClient(tracking_uri=uri)

    def run(self, request: TrackingRequest, parent: str) -> tuple[MlflowRun, bool]:
        """Return the run of that key, and whether it was there before: made if there is none."""
        return MlflowRun.of(self._client, request, parent)

    def existing(self, request: TrackingRequest, tracked: Tracked) -> MlflowRun:  # noqa: ARG002
        """Return a run that was found or made before."""
        return MlflowRun(self._client, tracked)

    def abandon(self, request: TrackingRequest) -> None:
        """End the run of one of ours that was deleted before it had ended; one that has said
        nothing was never begun, and goes."""
        client = self._client
        experiment = client.get_experiment_by_name(request.experiment or DEFAULT)
        for run in _with_key(client, experiment.experiment_id, request.key) if experiment else ():
            if run.info.status != "RUNNING":
                continue
            if run.data.metrics:
                client.set_terminated(run.info.run_id, "KILLED")
            else:
                client.delete_run(run.info.run_id)

    def status(self, error: Exception) -> int:
        """Return the HTTP status of what was refused; 0 for anything else."""
        return int(getattr(error, "get_http_status_code", int)())

    def out_of_reach(self, error: BaseException) -> bool:
        """Return whether nobody answered, rather than that somebody refused."""
        import requests

        lost = requests.ConnectionError | requests.Timeout
        return any(isinstance(cause, lost) for cause in causes(error))


class MlflowRun:
    """One run on a tracker. Every method raises what MLflow's client does."""

    def __init__(self, client: MlflowClient, tracked: Tracked) -> None:
        self._client = client
        self.tracked = tracked

    @classmethod
    def of(
        cls, client: MlflowClient, request: TrackingRequest, parent: str
    ) -> tuple[MlflowRun, bool]:
        """Return the run of that key, and whether it was there before: made if there is none."""
        name = request.experiment or DEFAULT
        experiment = _experiment(client, name)
        runs = _with_key(client, experiment, request.key)
        if not runs:
            tags = {KEY_TAG: request.key, **({PARENT_TAG: parent} if parent else {})}
            created = round(request.created * 1000)
            run = client.create_run(experiment, created, tags, request.name)
        else:
            run = runs[0]
        url = _page(request.uri, experiment, run.info.run_id)
        tracked = Tracked(request.uri, run.info.run_id, experiment, name, url)
        return cls(client, tracked), bool(runs)

    @property
    def id(self) -> str:
        return self.tracked.run

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Write parameters, which can't be changed later, and tags."""
        from mlflow.entities import Param, RunTag

        params = [Param(_name(n), v[:_LONGEST_PARAMETER]) for n, v in parameters.items()]
        tags_of_run = [RunTag(_name(n), v[:_LONGEST_TAG]) for n, v in tags.items() if v]
        for some in _chunks(params, _MOST_PARAMETERS):
            self._client.log_batch(self.id, params=some)
        for some in _chunks(tags_of_run, _MOST_PARAMETERS):
            self._client.log_batch(self.id, tags=some)

    def add_parameters(self, parameters: Mapping[str, str]) -> None:
        """Add those parameters whose names the run doesn't have yet."""
        stored = self._client.get_run(self.id).data.params if parameters else {}
        self.describe({n: v for n, v in parameters.items() if _name(n) not in stored}, {})

    def log(self, samples: Iterable[Sample]) -> None:
        """Log all samples, in their order."""
        from mlflow.entities import Metric

        metrics = (Metric(_name(s.metric), s.value, s.time, s.step) for s in samples)
        for some in _chunks(metrics, _MOST_METRICS):
            self._client.log_batch(self.id, metrics=some)

    def missing(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield those of the samples that it doesn't have; each counts as often as it is there."""
        stored_counts: Counter[tuple[str, int, int, str]] = Counter()
        names = set()
        for sample in samples:
            name = _name(sample.metric)
            if name not in names:
                names.add(name)
                history = self._client.get_metric_history(self.id, name)
                stored_counts.update(
                    _stored(Sample(name, m.step, m.timestamp, m.value)) for m in history
                )
            stored = _stored(sample._replace(metric=name))
            if stored_counts[stored]:
                stored_counts[stored] -= 1
            else:
                yield sample

    def keep(self, path: Path, below: str) -> None:
        """Store a file, or all files of a folder, as artifacts."""
        if path.is_dir():
            self._client.log_artifacts(self.id, str(path), below)
        else:
            self._client.log_artifact(self.id, str(path), below)

    def end(self, state: State, time: float, bests: Mapping[str, float]) -> None:  # noqa: ARG002
        """End the run; `time` in seconds since the epoch. MLflow finds the best values itself."""
        self._client.set_terminated(self.id, STATUSES[state], round(time * 1000))

    def drop_doubles(self, key: str) -> None:
        """Delete other runs of that key, which a process made whose answer never came."""
        for run in _with_key(self._client, self.tracked.experiment, key):
            if run.info.run_id != self.id:
                self._client.delete_run(run.info.run_id)


def _stored(sample: Sample) -> tuple[str, int, int, str]:
    """Return a key by which a stored value is recognized, with MLflow's rounding."""
    value = sample.value
    if math.isinf(value):
        value = math.copysign(_LARGEST, value)
    return sample.metric, sample.step, sample.time, repr(value + 0.0)  # there is no -0.0


def _experiment(client: MlflowClient, name: str) -> str:
    """Return the identifier of the experiment of that name, which is made if it isn't there."""
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:  # somebody else may just have made it
            experiment = client.get_experiment_by_name(name)
            if experiment is None:
                raise
    return str(experiment.experiment_id)


def _with_key(client: MlflowClient, experiment: str, key: str) -> Sequence[Run]:
    runs = client.search_runs([experiment], f"tags.`{KEY_TAG}` = '{key}'", max_results=10)
    return sorted(runs, key=lambda run: str(run.info.run_id))


def _page(uri: str, experiment: str, run: str) -> str:
    """Return the address of the run's page; empty where nothing says so."""
    web = uri.startswith(("http://", "https://"))
    return f"{uri.rstrip('/')}/#/experiments/{experiment}/runs/{run}" if web else ""


def _name(name: str) -> str:
    """Replace by `_` the characters that MLflow doesn't allow in names."""
    parts = [part for part in _ODD.sub("_", name).split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[:_LONGEST_NAME] or "_"


def _chunks(items: Iterable[object], most: int) -> Iterator[list[object]]:
    taking = iter(items)
    while some := list(islice(taking, most)):
        yield some
