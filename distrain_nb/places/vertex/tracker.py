"""Vertex AI Experiments as a tracker: its experiments, and the runs in them, found or made.

The SDK's settings are a global, so that a tracker has a configuration of its own, and puts it in
place before it calls anything.

A run of Vertex AI Experiments: what it is given, its scalars in the TensorBoard behind it.

By google-cloud-aiplatform's own objects. A point is known by its step: the service has the last one
that was written, so that all can be sent again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.rehearsed import Services
from distrain_nb.places.vertex.experiments import SUFFIX, ExperimentsPlace, address
from distrain_nb.run.pages.run_row import number
from distrain_nb.tracking.tracker import NotYet, TooLate, causes
from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import Tracked

if TYPE_CHECKING:
    from google.api_core import retry
    from google.cloud import aiplatform

    from distrain_nb.tracking.request import TrackingRequest
    from distrain_nb.tracking.tracker import Sample

STATES = {State.SUCCEEDED: "COMPLETE", State.FAILED: "FAILED", State.CANCELLED: "CANCELLED"}
MOST_POINTS, LONGEST_METRIC = 5000, 128
KEY = "distrain.key"  # of a run's context


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


RETRY_S = 10.0


class VertexTracker:
    """The experiments of a project in a region."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._place = ExperimentsPlace.of(uri)
        self._configs: dict[str, Any] = {}

    def run(self, request: TrackingRequest, parent: str) -> tuple[VertexRun, bool]:  # noqa: ARG002
        """Return the run of that name, and whether it was there before: made if there is none. Its
        name is written down first, by which it is known to be ours."""
        self._use(request)
        from google.cloud import aiplatform

        experiment = self._experiment(request.experiment)
        before = request.tracked
        ours = request.name if request.joins else before.name if before else ""
        name = ours or _free(request, experiment)
        url = self._place.page(experiment.name, name)
        tracked = Tracked(self._uri, "", experiment.name, experiment.name, url, name=name)
        tracked.write(request.path)
        run = aiplatform.ExperimentRun.get(name, experiment=experiment) if ours else None
        existed = run is not None
        if run is None:
            run = _created(name, experiment, tracked, request.path)
        else:
            _complete(run, experiment)
        tracked = replace(tracked, run=run.resource_name)
        return VertexRun(self._use, run, tracked, request), existed

    def existing(self, request: TrackingRequest, tracked: Tracked) -> VertexRun:
        """Return a run that was found or made before."""
        self._use(request)
        from google.cloud import aiplatform

        run = aiplatform.ExperimentRun(tracked.name, experiment=tracked.experiment)
        return VertexRun(self._use, run, tracked, request)

    def abandon(self, request: TrackingRequest) -> None:
        """End the run of one of ours that was deleted before it had ended."""
        self._use(request)
        from google.cloud import aiplatform

        experiment = aiplatform.Experiment.get(request.experiment)
        for name in _names(request) if experiment else ():
            run = aiplatform.ExperimentRun.get(name, experiment=experiment)
            if run is None or run.get_state() != "RUNNING":
                continue
            if aiplatform.Context(run.resource_name).metadata.get(KEY) == request.key:
                run.update_state(state_of(State.CANCELLED))

    def status(self, error: Exception) -> int:
        """Return the HTTP status of what was refused, by the SDK itself too; 0 for anything
        else."""
        from google.api_core.exceptions import GoogleAPICallError

        codes = (cause.code for cause in causes(error) if isinstance(cause, GoogleAPICallError))
        return int(next(codes, None) or (400 if isinstance(error, ValueError) else 0))

    def out_of_reach(self, error: BaseException) -> bool:
        """Return whether nobody answered, or there is no login, rather than that somebody
        refused."""
        from google.api_core import exceptions
        from google.auth.exceptions import GoogleAuthError

        lost = exceptions.ServiceUnavailable | exceptions.DeadlineExceeded | exceptions.RetryError
        return any(isinstance(cause, lost | GoogleAuthError) for cause in causes(error))

    def _use(self, request: TrackingRequest) -> None:
        """Have the SDK's calls go to this place. Raises NotYet and TooLate where a rehearsal's
        services are not there yet, or not any more."""
        from google.cloud.aiplatform import base, initializer

        address = self._address(request)
        base._DEFAULT_RETRY = _retry()
        if address not in self._configs:
            self._configs[address] = self._config(address)
        initializer.global_config = self._configs[address]

    def _config(self, address: str) -> Any:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud.aiplatform import initializer

        config: Any = type(initializer.global_config)()
        credentials = AnonymousCredentials() if address else None  # type: ignore[no-untyped-call]
        place = self._place
        config.init(project=place.project, location=place.region, credentials=credentials)
        if address:
            from distrain_nb.places.vertex.client import sdk_client

            config.create_client = lambda client_class, **_: sdk_client(client_class, address)
        return config

    def _address(self, request: TrackingRequest) -> str:
        """Return the address of a stand-in; empty for the service itself."""
        if not self._place.rehearsed:
            return address()
        services = Services.read(Path(request.parent or request.folder))
        if services is not None and services.owner.alive:
            return services.endpoints["aiplatform"]
        if services is None and request.path.is_dir() and not request.has_ended:
            raise NotYet
        raise TooLate("the rehearsal ended before Vertex AI Experiments had all of the run")

    def _experiment(self, name: str) -> aiplatform.Experiment:
        """Return the experiment of that name, with a TensorBoard behind it; what isn't there is
        made."""
        from google.cloud import aiplatform

        experiment = aiplatform.Experiment.get_or_create(name)
        if not experiment.backing_tensorboard_resource_name:
            experiment.assign_backing_tensorboard(self._place.tensorboard or _default_board())
        return experiment


def _names(request: TrackingRequest) -> tuple[str, str]:
    """Return the names that a run may have: the second is for one whose first is taken."""
    return request.name, f"{request.name}-{request.key[:SUFFIX]}"


def _free(request: TrackingRequest, experiment: aiplatform.Experiment) -> str:
    from google.cloud import aiplatform

    first, second = _names(request)
    return second if aiplatform.ExperimentRun.get(first, experiment=experiment) else first


def _created(
    name: str, experiment: aiplatform.Experiment, tracked: Tracked, folder: Path
) -> aiplatform.ExperimentRun:
    """Return a new run. Somebody else's that has come meanwhile is not taken for it."""
    from google.api_core.exceptions import AlreadyExists
    from google.cloud import aiplatform

    try:
        return aiplatform.ExperimentRun.create(name, experiment=experiment)
    except AlreadyExists:
        replace(tracked, name="").write(folder)
        raise


def _complete(run: aiplatform.ExperimentRun, experiment: aiplatform.Experiment) -> None:
    """Complete a run whose maker was killed before it was filed and had a TensorBoard."""
    from google.cloud import aiplatform

    context = aiplatform.Context(experiment.resource_name)
    context.add_context_children([aiplatform.Context(run.resource_name)])
    board = experiment.get_backing_tensorboard_resource()
    with suppress(ValueError):  # it has one
        run.assign_backing_tensorboard(board)


@lru_cache
def _retry() -> retry.Retry:
    """Return for how long to ask again: the SDK would do so for minutes where nobody answers."""
    from google.api_core import retry

    return retry.Retry(timeout=RETRY_S)


def _default_board() -> str:
    """Return the region's, as the SDK chooses it; made if there is none."""
    from google.cloud import aiplatform

    board = next(iter(aiplatform.Tensorboard.list(filter="is_default=true")), None)
    default = board or aiplatform.Tensorboard.create("Default Tensorboard", is_default=True)
    return str(default.resource_name)
