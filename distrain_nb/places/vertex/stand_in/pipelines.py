"""The pipeline service: training pipelines of the custom task, each around a custom job."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

from google.cloud.aiplatform_v1 import types
from google.protobuf import json_format, struct_pb2

from distrain_nb.places.vertex.stand_in.job_resource import now
from distrain_nb.places.vertex.stand_in.jobs import JobService, page_of_jobs
from distrain_nb.places.vertex.stand_in.refusals import invalid, not_found

CUSTOM_TASK = "schema/trainingjob/definition/custom_task_1.0.0.yaml"
_STATES: Any = types.PipelineState
_STATE_OF: dict[Any, Any] = {
    types.JobState.JOB_STATE_QUEUED: _STATES.PIPELINE_STATE_QUEUED,
    types.JobState.JOB_STATE_PENDING: _STATES.PIPELINE_STATE_PENDING,
    types.JobState.JOB_STATE_RUNNING: _STATES.PIPELINE_STATE_RUNNING,
    types.JobState.JOB_STATE_SUCCEEDED: _STATES.PIPELINE_STATE_SUCCEEDED,
    types.JobState.JOB_STATE_FAILED: _STATES.PIPELINE_STATE_FAILED,
    types.JobState.JOB_STATE_CANCELLING: _STATES.PIPELINE_STATE_CANCELLING,
    types.JobState.JOB_STATE_CANCELLED: _STATES.PIPELINE_STATE_CANCELLED,
}


class PipelineService:
    """Every training pipeline of a rehearsal."""

    def __init__(self, jobs: JobService) -> None:
        self._jobs = jobs
        self._pipelines: dict[str, tuple[types.TrainingPipeline, str]] = {}
        self._lock = threading.Lock()

    def create(self, request: types.CreateTrainingPipelineRequest) -> types.TrainingPipeline:
        """Start the custom job that the pipeline's inputs describe. Raises ApiError."""
        requested = request.training_pipeline
        if not requested.training_task_definition.endswith(CUSTOM_TASK):
            raise invalid(
                f"training_task_definition {requested.training_task_definition!r} is not "
                f"rehearsed; allowed is …/{CUSTOM_TASK}"
            )
        job = types.CustomJob(display_name=requested.display_name, labels=dict(requested.labels))
        inputs = json_format.MessageToDict(type(requested).pb(requested).training_task_inputs)
        try:
            spec = json_format.ParseDict(inputs, types.CustomJobSpec.pb(types.CustomJobSpec()))
        except json_format.ParseError as error:
            raise invalid(f"training_task_inputs: {error}") from None
        job.job_spec = types.CustomJobSpec.wrap(spec)
        started = self._jobs.start(request.parent, job)
        pipeline = copy.deepcopy(requested)
        pipeline.name = f"{request.parent}/trainingPipelines/{time.time_ns()}"
        pipeline.create_time = now()
        with self._lock:
            self._pipelines[pipeline.name] = (pipeline, started.name)
        return self.get(pipeline.name)

    def get(self, name: str) -> types.TrainingPipeline:
        """Return the pipeline in the present state of its job."""
        pipeline, job = self._find(name)
        current = self._jobs.get(job)
        shown = copy.deepcopy(pipeline)
        shown.state = _STATE_OF[current.state]
        shown.update_time = current.update_time
        for field in ("start_time", "end_time"):
            if getattr(current, field):
                setattr(shown, field, getattr(current, field))
        if current.error.message:
            shown.error = current.error
        metadata = struct_pb2.Struct()
        metadata.update({"backingCustomJob": job})
        value = struct_pb2.Value(struct_value=metadata)
        types.TrainingPipeline.pb(shown).training_task_metadata.CopyFrom(value)
        return shown

    def list(self, request: types.ListTrainingPipelinesRequest) -> Any:
        """Return a page of the pipelines, the newest first, filtered as jobs are."""
        with self._lock:
            names = list(self._pipelines)
        listed, token = page_of_jobs(map(self.get, names), request)
        return types.ListTrainingPipelinesResponse(training_pipelines=listed, next_page_token=token)

    def cancel(self, name: str) -> None:
        """Cancel the job of the pipeline."""
        self._jobs.cancel(self._find(name)[1])

    def _find(self, name: str) -> tuple[types.TrainingPipeline, str]:
        with self._lock:
            if name not in self._pipelines:
                raise not_found(name)
            return self._pipelines[name]
