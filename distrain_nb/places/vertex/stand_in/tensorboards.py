"""The TensorBoard service: the time series of experiments' runs."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from google.cloud.aiplatform_v1 import types

from distrain_nb.places.vertex.stand_in.jobs import page
from distrain_nb.places.vertex.stand_in.metadata import finished_operation
from distrain_nb.places.vertex.stand_in.refusals import invalid
from distrain_nb.places.vertex.stand_in.resources import Resources, Scalar
from distrain_nb.rehearsal.failures import ApiError

if TYPE_CHECKING:
    from google.longrunning.operations_pb2 import Operation


_ID = re.compile(r"[a-z0-9-]{1,128}")
_PARENT = re.compile(r"projects/[^/]+/locations/[a-z0-9-]+")
_DEFAULT = re.compile(r'is_default\s*=\s*"?true"?')
MOST_WRITTEN, MOST_READ, MOST_SERIES = 5000, 1000, 100
SCALAR: Any = types.TensorboardTimeSeries.ValueType.SCALAR


class TensorboardService:
    """TensorBoards, their experiments, and the scalars of these experiments' runs."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.get = resources.getter(types.Tensorboard)
        self.get_experiment = resources.getter(types.TensorboardExperiment)
        self.get_run = resources.getter(types.TensorboardRun)

    def create(self, request: types.CreateTensorboardRequest) -> Operation:
        if not _PARENT.fullmatch(request.parent):
            raise invalid(f"parent {request.parent!r} is not projects/PROJECT/locations/REGION")
        if not request.tensorboard.display_name:
            raise invalid("display_name is required.")
        name = f"{request.parent}/tensorboards/{time.time_ns()}"
        board = self._resources.store(request.tensorboard, name)
        return finished_operation(board, board.name)

    def list(self, request: types.ListTensorboardsRequest) -> types.ListTensorboardsResponse:
        if request.filter and not _DEFAULT.fullmatch(request.filter):
            raise ApiError("UNIMPLEMENTED", f"A rehearsal has no such filter: {request.filter}")
        every = self._resources.all(types.Tensorboard, f"{request.parent}/tensorboards")
        listed, token = page(
            [board for board in every if board.is_default or not request.filter], request
        )
        return types.ListTensorboardsResponse(tensorboards=listed, next_page_token=token)

    def create_experiment(
        self, request: types.CreateTensorboardExperimentRequest
    ) -> types.TensorboardExperiment:
        self._resources.get(types.Tensorboard, request.parent)
        name = f"{request.parent}/experiments/{_valid(request.tensorboard_experiment_id)}"
        experiment: types.TensorboardExperiment = request.tensorboard_experiment
        return self._resources.store(experiment, name)

    def create_run(self, request: types.CreateTensorboardRunRequest) -> types.TensorboardRun:
        self._resources.get(types.TensorboardExperiment, request.parent)
        if not request.tensorboard_run.display_name:
            raise invalid("display_name is required.")
        run: types.TensorboardRun = request.tensorboard_run
        name = f"{request.parent}/runs/{_valid(request.tensorboard_run_id)}"
        return self._resources.store(run, name)

    def create_series(
        self, request: types.CreateTensorboardTimeSeriesRequest
    ) -> types.TensorboardTimeSeries:
        """Raise ApiError for a name that the run has already."""
        self._resources.get(types.TensorboardRun, request.parent)
        requested = request.tensorboard_time_series
        collection = f"{request.parent}/timeSeries"
        if requested.value_type != SCALAR:
            raise ApiError("UNIMPLEMENTED", "A rehearsal's TensorBoard has scalars alone.")
        if not 0 < len(requested.display_name) <= 128:
            raise invalid("display_name is required, and has 128 characters at most.")
        every = self._resources.all(types.TensorboardTimeSeries, collection)
        if any(existing.display_name == requested.display_name for existing in every):
            raise ApiError("ALREADY_EXISTS", f"{requested.display_name} already exists.")
        series: types.TensorboardTimeSeries = requested
        return self._resources.store(series, f"{collection}/{time.time_ns()}")

    def list_series(
        self, request: types.ListTensorboardTimeSeriesRequest
    ) -> types.ListTensorboardTimeSeriesResponse:
        if request.filter:
            raise ApiError("UNIMPLEMENTED", f"A rehearsal has no such filter: {request.filter}")
        every = self._resources.all(types.TensorboardTimeSeries, f"{request.parent}/timeSeries")
        listed, token = page(every, request)
        return types.ListTensorboardTimeSeriesResponse(
            tensorboard_time_series=listed, next_page_token=token
        )

    def write(
        self, request: types.WriteTensorboardRunDataRequest
    ) -> types.WriteTensorboardRunDataResponse:
        """Return points by their step: a later one takes the place of what is there."""
        if sum(len(data.values) for data in request.time_series_data) > MOST_WRITTEN:
            raise invalid(f"At most {MOST_WRITTEN} data points can be written at once.")
        for data in request.time_series_data:
            name = f"{request.tensorboard_run}/timeSeries/{data.tensorboard_time_series_id}"
            self._resources.get(types.TensorboardTimeSeries, name)
            pb = type(data).pb(data)
            self._resources.write(
                name,
                (
                    Scalar(v.step, v.wall_time.seconds + v.wall_time.nanos / 1e9, v.scalar.value)
                    for v in pb.values
                ),
            )
        return types.WriteTensorboardRunDataResponse()

    def read(
        self, request: types.BatchReadTensorboardTimeSeriesDataRequest
    ) -> types.BatchReadTensorboardTimeSeriesDataResponse:
        """Read a series as the service does: a thousand points at most."""
        if len(request.time_series) > MOST_SERIES:
            raise invalid(f"At most {MOST_SERIES} time series can be read at once.")
        answer = types.BatchReadTensorboardTimeSeriesDataResponse()
        pb = type(answer).pb(answer)
        for name in request.time_series:
            series = self._resources.get(types.TensorboardTimeSeries, name)
            data = pb.time_series_data.add()
            data.tensorboard_time_series_id = name.rpartition("/")[2]
            data.value_type = series.value_type
            for point in self._resources.points(name, MOST_READ):
                value = data.values.add(step=point.step)
                value.wall_time.FromNanoseconds(round(point.time * 1e6) * 1000)
                value.scalar.value = point.value
        return answer


def _valid(identifier: str) -> str:
    if not _ID.fullmatch(identifier):
        raise invalid(f"{identifier!r} is not a valid resource ID: 1 to 128 of [a-z0-9-].")
    return identifier
