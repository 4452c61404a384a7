"""A run of Vertex AI Experiments: its parameters, and its scalars in the TensorBoard behind it.

It uses google-cloud-aiplatform's own objects. A step has one point: the service keeps the last one
that was written, so all points can be sent again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.run.pages.run_row import number
from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import Tracked

if TYPE_CHECKING:
    from google.cloud import aiplatform

    from distrain_nb.tracking.request import TrackingRequest
    from distrain_nb.tracking.tracker import Sample


KEY = "distrain.key"  # of a run's context
STATES = {State.SUCCEEDED: "COMPLETE", State.FAILED: "FAILED", State.CANCELLED: "CANCELLED"}
MOST_POINTS, LONGEST_METRIC = 5000, 128


class VertexRun:
    """One run there. Every method raises what the SDK does."""

    def __init__(
        self,
        use: Callable[[TrackingRequest], None],
        run: aiplatform.ExperimentRun,
        tracked: Tracked,
        request: TrackingRequest,
    ) -> None:
        self._use = partial(use, request)
        self._run = run
        self._key = request.key
        self.tracked = tracked

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Write parameters, as numbers where they are some; tags go into the metadata of its
        context."""
        self._use()
        from google.cloud import aiplatform

        metadata = {KEY: self._key, **{name: text for name, text in tags.items() if text}}
        aiplatform.Context(self._run.resource_name).update(metadata=metadata)
        if parameters:
            self._run.log_params({name: _value(text) for name, text in parameters.items()})

    def add_parameters(self, parameters: Mapping[str, str]) -> None:
        """Add those parameters whose names the run doesn't have yet."""
        if parameters:
            self._use()
            stored = self._run.get_params()
            self.describe({n: v for n, v in parameters.items() if n not in stored}, {})

    def log(self, samples: Iterable[Sample]) -> None:
        """Log all samples, in their order."""
        taking = iter(samples)
        while some := list(islice(taking, MOST_POINTS)):
            self._use()
            self._write(some)

    def missing(self, samples: Iterable[Sample]) -> Iterable[Sample]:
        """Return all samples: what is there already is written again."""
        return samples

    def keep(self, path: Path, below: str) -> None:
        """Store nothing: experiments have no place for files that isn't a bucket."""

    def end(self, state: State, time: float, bests: Mapping[str, float]) -> None:  # noqa: ARG002
        """Write the best values as summary metrics, and the state. The service sets its own end
        time."""
        self._use()
        if bests:
            self._run.log_metrics(dict(bests))
        self._run.update_state(state_of(state))

    def drop_doubles(self, key: str) -> None:
        """Delete nothing: a run is known by its name before it is made."""

    def _write(self, samples: Iterable[Sample]) -> None:
        from google.cloud.aiplatform_v1.types import WriteTensorboardRunDataRequest

        request = WriteTensorboardRunDataRequest(tensorboard_run=self._board.resource_name)
        pb = WriteTensorboardRunDataRequest.pb(request)
        series: dict[str, Any] = {}
        for sample in samples:
            name = sample.metric[:LONGEST_METRIC]
            if name not in series:
                series[name] = pb.time_series_data.add(
                    tensorboard_time_series_id=self._series_of(name), value_type="SCALAR"
                )
            point = series[name].values.add(step=sample.step)
            point.wall_time.FromMilliseconds(sample.time)
            point.scalar.value = sample.value
        self._board.api_client.write_tensorboard_run_data(request)

    def _series_of(self, name: str) -> str:
        if name not in self._series:
            self._series[name] = self._board.create_tensorboard_time_series(name).name
        return self._series[name]

    @cached_property
    def _series(self) -> dict[str, str]:
        """The identifiers of its time series, by the names of their metrics."""
        from google.cloud import aiplatform

        listed = aiplatform.TensorboardTimeSeries.list(self._board.resource_name)
        return {series.display_name: series.name for series in listed}

    @cached_property
    def _board(self) -> aiplatform.TensorboardRun:
        """What has its time series in the TensorBoard."""
        from google.cloud import aiplatform

        experiment = aiplatform.Experiment(self.tracked.experiment)
        board = experiment.backing_tensorboard_resource_name
        below = f"experiments/{experiment.name}/runs/{self._run.name}"
        return aiplatform.TensorboardRun(f"{board}/{below}")


def state_of(state: State) -> Any:
    """Return the service's name of the end of a run."""
    from google.cloud.aiplatform_v1.types import Execution

    return getattr(Execution.State, STATES[state])


def _value(text: str) -> float | str:
    """Return a number, if JSON can say it."""
    parsed = number(text)
    return text if isinstance(parsed, float) and not math.isfinite(parsed) else parsed
