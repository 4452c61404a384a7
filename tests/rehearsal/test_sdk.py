"""Objects of google-cloud-aiplatform for jobs of a stand-in, and runs that follow such jobs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform
from google.cloud.aiplatform import initializer

from distrain_nb import api
from distrain_nb.backends.remote import sdk
from distrain_nb.backends.remote.carrier import carry
from distrain_nb.errors import OptionError, RunNotFound, RunNotReady
from distrain_nb.run import Run, Store
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.image.services.bases import BaseImage
from tests.rehearsal.conftest import Cloud, cloud_with, pool

ENDLESS = "import time\nprint('ready', flush=True)\ntime.sleep(600)"


@pytest.fixture
def vertex(no_docker: None, small: BaseImage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """The stand-in, which the SDK and what carries runs take for Vertex AI."""
    with cloud_with(small) as cloud:

        def client(client_class: Any, **_: Any) -> Any:
            return cloud.pipelines if "Pipeline" in client_class.__name__ else cloud.jobs

        def start(folder: Path) -> None:
            threading.Thread(target=carry, args=(folder, cloud.endpoints), daemon=True).start()

        monkeypatch.setattr(initializer.global_config, "create_client", client)
        monkeypatch.setattr(initializer.global_config, "_credentials", AnonymousCredentials())
        monkeypatch.setattr(sdk, "start_carrier", start)
        yield cloud


def test_a_job_of_the_sdk_is_followed_and_cancelled(vertex: Cloud, home: None) -> None:
    sent = vertex.submit(pool(vertex.image(ENDLESS)))
    job = aiplatform.CustomJob.get(sent.name, project="my-project", location="us-central1")
    run = api.attach(job)
    assert run.name == f"job-{sent.name.rpartition('/')[2]}"
    assert eventually(lambda: "ready" in run.logs(), 300), run.status
    assert run.state is State.RUNNING
    assert api.attach(job).id == api.attach(sent.name).id == run.id
    again = run.sdk_job()
    assert isinstance(again, aiplatform.CustomJob) and again.resource_name == sent.name
    run.cancel()
    assert eventually(run.done, 300), run.status
    assert run.state is State.CANCELLED
    assert again.state.name == "JOB_STATE_CANCELLED"
    assert dict(run.results) == {} and run.metrics().empty


def test_what_is_no_job(home: None) -> None:
    before = len(api.runs())
    with pytest.raises(RunNotFound, match="no job of a cloud is called so"):
        api.attach("projects/p/locations/us-central1/models/7")
    with pytest.raises(OptionError, match=r"1\.5 is neither"):
        api.attach(1.5)
    assert len(api.runs()) == before


def test_a_run_on_this_machine_has_none(home: None) -> None:
    with pytest.raises(OptionError, match="it runs on this machine"):
        api.submit("pass", wait=True).sdk_job()
    store = Store()
    record = store.add("night", "vertex", "", "--on vertex", handle={"rehearsal": True})
    with pytest.raises(RunNotReady, match="it was a rehearsal"):
        Run(record).sdk_job()
