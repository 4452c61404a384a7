"""Vertex AI Experiments as a tracker: its experiments, and the runs in them, found or made.

The SDK's settings are a global, so that a tracker has a configuration of its own, and puts it in
place before it calls anything.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.rehearsal_services import Services
from distrain_nb.places.vertex.experiments import SUFFIX, ExperimentsPlace, address
from distrain_nb.places.vertex.tracker_run import KEY, VertexRun, state_of
from distrain_nb.tracking.tracker import NotYet, TooLate, causes
from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import Tracked

if TYPE_CHECKING:
    from google.api_core import retry
    from google.cloud import aiplatform

    from distrain_nb.tracking.request import TrackingRequest


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
