"""What the high-level SDK sends for the same worker pools."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.protobuf.json_format import MessageToDict, ParseDict

from distrain_nb.layout import Layout
from distrain_nb.places.vertex.jobs import CustomJobs
from tests.vertex.jobs import planned

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.types import CustomJob

pytestmark = [pytest.mark.slow, pytest.mark.brief]  # importing the SDK takes seconds

SERVICE = "google.cloud.aiplatform.v1.JobService"


@contextmanager
def capturing(sent: list[CustomJob]) -> Iterator[str]:
    """A job service that takes every job, and has none to show."""
    from google.cloud.aiplatform_v1.types import CreateCustomJobRequest, CustomJob

    def create(data: bytes, context: grpc.ServicerContext) -> bytes:
        sent.append(CreateCustomJobRequest.deserialize(data).custom_job)
        name = "projects/my-project/locations/us-central1/customJobs/7"
        return bytes(CustomJob.serialize(CustomJob(name=name)))

    methods = {
        "CreateCustomJob": grpc.unary_unary_rpc_method_handler(create),
        "ListCustomJobs": grpc.unary_unary_rpc_method_handler(lambda data, context: b""),
    }
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)


def test_the_high_level_sdk_sends_the_same_pools() -> None:
    from google.cloud import aiplatform
    from google.cloud.aiplatform_v1.types import CustomJob

    layout = Layout.of(
        "vertex", primary="n1-standard-8+2*T4", workers="3*n1-standard-8+2*T4",
        evaluators="n1-standard-4", region="us-central1",
    )  # fmt: skip
    request = planned(layout, name="My run").spec().request
    ours = CustomJob.wrap(ParseDict(request, CustomJob.pb(CustomJob())))
    spec = MessageToDict(CustomJob.pb(ours), preserving_proto_field_name=True)["job_spec"]
    high = aiplatform.CustomJob(
        display_name="My run",
        worker_pool_specs=spec["worker_pool_specs"],
        base_output_dir=spec["base_output_directory"]["output_uri_prefix"],
        labels=dict(ours.labels),
        project="my-project",
        location="us-central1",
        credentials=AnonymousCredentials(),
        staging_bucket="gs://my-bucket",
    )
    sent: list[CustomJob] = []
    with capturing(sent) as address:
        jobs = CustomJobs("my-project", "us-central1", {"aiplatform": address})
        assert jobs.create(request).endswith("customJobs/7")
    theirs = CustomJob.pb(high._gca_resource)
    assert MessageToDict(CustomJob.pb(sent[0])) == MessageToDict(theirs)
