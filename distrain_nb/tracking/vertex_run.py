"""A run of Vertex AI Experiments: what it is given, its scalars in the TensorBoard behind it.

By google-cloud-aiplatform's own objects. Its settings are a global of the SDK, so that a tracker
has a configuration of its own, and puts it in place before it calls anything. A point is known by
its step: the service has the last one that was written, so that all can be sent again.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.rehearsed import Services
from distrain_nb.backends.vertex.experiments import SUFFIX, ExperimentsPlace, address
from distrain_nb.run.pages.listing import number
from distrain_nb.tracking.tracker import NotYet, Sample, TooLate, causes
from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import Tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from google.api_core import retry
    from google.cloud import aiplatform

    from distrain_nb.tracking.request import TrackingRequest

STATES = {State.SUCCEEDED: "COMPLETE", State.FAILED: "FAILED", State.CANCELLED: "CANCELLED"}
MOST_POINTS, LONGEST_METRIC = 5000, 128
RETRY_S = 10.0
KEY = "distrain.key"  # of a run's context


class VertexTracker:
    """The experiments of a project in a region."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._place = ExperimentsPlace.of(uri)
        self._configs: dict[str, Any] = {}

    def run(self, request: TrackingRequest, parent: str) -> tuple[VertexRun, bool]:  # noqa: ARG002
        """The run of that name, and whether it was there before: made if there is none. Its name
        is written down first, by which it is known to be ours."""
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
        there = run is not None
        if run is None:
            run = _made(name, experiment, tracked, request.path)
        else:
            _complete(run, experiment)
        tracked = replace(tracked, run=run.resource_name)
        return VertexRun(self._use, run, tracked, request), there

    def known(self, request: TrackingRequest, tracked: Tracked) -> VertexRun:
        """A run that was found or made before."""
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
                run.update_state(_state("CANCELLED"))

    def status(self, wrong: Exception) -> int:
        """The HTTP status of what was refused, by the SDK itself too; 0 for anything else."""
        from google.api_core.exceptions import GoogleAPICallError

        found = (each.code for each in causes(wrong) if isinstance(each, GoogleAPICallError))
        return int(next(found, None) or (400 if isinstance(wrong, ValueError) else 0))

    def out_of_reach(self, wrong: BaseException) -> bool:
        """Whether nobody answered, or there is no login, rather than that somebody refused."""
        from google.api_core import exceptions
        from google.auth.exceptions import GoogleAuthError

        lost = exceptions.ServiceUnavailable | exceptions.DeadlineExceeded | exceptions.RetryError
        return any(isinstance(each, lost | GoogleAuthError) for each in causes(wrong))

    def _use(self, request: TrackingRequest) -> None:
        """Have the SDK's calls go to this place. Raises NotYet and TooLate where a rehearsal's
        services are not there yet, or not any more."""
        from google.cloud.aiplatform import base, initializer

        found = self._address(request)
        base._DEFAULT_RETRY = _retry()
        if found not in self._configs:
            self._configs[found] = self._config(found)
        initializer.global_config = self._configs[found]

    def _config(self, found: str) -> Any:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud.aiplatform import initializer

        config: Any = type(initializer.global_config)()
        credentials = AnonymousCredentials() if found else None  # type: ignore[no-untyped-call]
        place = self._place
        config.init(project=place.project, location=place.region, credentials=credentials)
        if found:
            from distrain_nb.backends.vertex.client import sdk_client

            config.create_client = lambda client_class, **_: sdk_client(client_class, found)
        return config

    def _address(self, request: TrackingRequest) -> str:
        """Of a stand-in; empty for the service itself."""
        if not self._place.rehearsed:
            return address()
        services = Services.read(request.path)
        if services is not None and services.owner.alive:
            return services.endpoints["aiplatform"]
        if services is None and request.path.is_dir() and not request.has_ended:
            raise NotYet
        raise TooLate("the rehearsal ended before Vertex AI Experiments had all of the run")

    def _experiment(self, name: str) -> aiplatform.Experiment:
        """The experiment of that name, with a TensorBoard behind it; what isn't there is made."""
        from google.cloud import aiplatform

        experiment = aiplatform.Experiment.get_or_create(name)
        if not experiment.backing_tensorboard_resource_name:
            experiment.assign_backing_tensorboard(self._place.tensorboard or _default_board())
        return experiment


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
        """Parameters, as numbers where they are some; tags go into the metadata of its context."""
        self._use()
        from google.cloud import aiplatform

        said = {KEY: self._key, **{name: text for name, text in tags.items() if text}}
        aiplatform.Context(self._run.resource_name).update(metadata=said)
        if parameters:
            self._run.log_params({name: _value(text) for name, text in parameters.items()})

    def add_parameters(self, parameters: Mapping[str, str]) -> None:
        """Those of which it has none of that name yet."""
        if parameters:
            self._use()
            known = self._run.get_params()
            self.describe({n: v for n, v in parameters.items() if n not in known}, {})

    def log(self, samples: Iterable[Sample]) -> None:
        """All of them, in turn."""
        taking = iter(samples)
        while some := list(islice(taking, MOST_POINTS)):
            self._use()
            self._write(some)

    def missing(self, samples: Iterable[Sample]) -> Iterable[Sample]:
        """All of them: what is there already is written again."""
        return samples

    def keep(self, path: Path, below: str) -> None:
        """Experiments have no place for files that isn't a bucket."""

    def end(self, state: State, time: float, bests: Mapping[str, float]) -> None:  # noqa: ARG002
        """The best values are its summary metrics; the service has its own time."""
        self._use()
        if bests:
            self._run.log_metrics(dict(bests))
        self._run.update_state(_state(STATES[state]))

    def drop_doubles(self, key: str) -> None:
        """There are none: a run is known by its name before it is made."""

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

        found = aiplatform.TensorboardTimeSeries.list(self._board.resource_name)
        return {series.display_name: series.name for series in found}

    @cached_property
    def _board(self) -> aiplatform.TensorboardRun:
        """What has its time series in the TensorBoard."""
        from google.cloud import aiplatform

        experiment = aiplatform.Experiment(self.tracked.experiment)
        board = experiment.backing_tensorboard_resource_name
        below = f"experiments/{experiment.name}/runs/{self._run.name}"
        return aiplatform.TensorboardRun(f"{board}/{below}")


def _names(request: TrackingRequest) -> tuple[str, str]:
    """What its run may be called: the second name is for one whose first is taken."""
    return request.name, f"{request.name}-{request.key[:SUFFIX]}"


def _free(request: TrackingRequest, experiment: aiplatform.Experiment) -> str:
    from google.cloud import aiplatform

    first, other = _names(request)
    return other if aiplatform.ExperimentRun.get(first, experiment=experiment) else first


def _made(
    name: str, experiment: aiplatform.Experiment, tracked: Tracked, folder: Path
) -> aiplatform.ExperimentRun:
    """A new run. Somebody else's that has come meanwhile is not taken for it."""
    from google.api_core.exceptions import AlreadyExists
    from google.cloud import aiplatform

    try:
        return aiplatform.ExperimentRun.create(name, experiment=experiment)
    except AlreadyExists:
        replace(tracked, name="").write(folder)
        raise


def _complete(run: aiplatform.ExperimentRun, experiment: aiplatform.Experiment) -> None:
    """Whoever made it may have been killed before it was filed, and had a TensorBoard."""
    from google.cloud import aiplatform

    context = aiplatform.Context(experiment.resource_name)
    context.add_context_children([aiplatform.Context(run.resource_name)])
    board = experiment.get_backing_tensorboard_resource()
    with suppress(ValueError):  # it has one
        run.assign_backing_tensorboard(board)


@lru_cache
def _retry() -> retry.Retry:
    """The SDK would go on for minutes where nobody answers."""
    from google.api_core import retry

    return retry.Retry(timeout=RETRY_S)


def _default_board() -> str:
    """The region's, as the SDK chooses it; made if there is none."""
    from google.cloud import aiplatform

    board = next(iter(aiplatform.Tensorboard.list(filter="is_default=true")), None)
    made = board or aiplatform.Tensorboard.create("Default Tensorboard", is_default=True)
    return str(made.resource_name)


def _state(name: str) -> Any:
    from google.cloud.aiplatform_v1.types import Execution

    return getattr(Execution.State, name)


def _value(text: str) -> float | str:
    """A number, if JSON can say it."""
    found = number(text)
    return text if isinstance(found, float) and not math.isfinite(found) else found
