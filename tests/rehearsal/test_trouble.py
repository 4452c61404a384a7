"""What goes wrong on purpose."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from google.api_core import exceptions

from distrain_nb.errors import OptionError
from distrain_nb.places.vertex.stand_in import SYNTAX
from distrain_nb.rehearsal.faults import Faults, Preemption
from tests.image.services.bases import BaseImage

from .conftest import PARENT, cloud_with, pool

RESUMING = """\
import os, pathlib, time
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
mine = folder / f"{os.environ['RANK']}.txt"
print("found", sorted(x.name for x in folder.iterdir()), flush=True)
resumed = mine.exists()
mine.write_text("saved")
while len(list(folder.glob("*.txt"))) < 2:
    time.sleep(0.1)
if not resumed:
    print("both saved", flush=True)
    time.sleep(600)
"""


def test_preemption_restarts_the_whole_job(no_docker: None, small: BaseImage) -> None:
    with cloud_with(small, "preempt=workerpool1-0@both saved") as cloud:
        image = cloud.image(RESUMING)
        scheduling = {"restart_job_on_worker_restart": True}
        job = cloud.submit(pool(image), pool(image), scheduling=scheduling)
        done = cloud.wait(job.name)
        assert done.state.name == "JOB_STATE_SUCCEEDED", cloud.told(done)
        found = [x for x in cloud.said(job.name, "workerpool0-0") if "found" in x]
        assert len(found) == 2 and "'0.txt', '1.txt'" in found[1], cloud.told(done)
        assert "The replica workerpool1-0 was preempted." in cloud.said(job.name, "service")


def test_a_job_that_reaches_its_timeout(no_docker: None, small: BaseImage) -> None:
    with cloud_with(small) as cloud:
        image = cloud.image("import time\ntime.sleep(600)")
        done = cloud.wait(cloud.submit(pool(image), scheduling={"timeout": "2s"}).name)
        assert done.state.name == "JOB_STATE_FAILED"
        assert done.error.message == "The job has run for its timeout of 2 s and was stopped."


LINES = "for n in range(2500):\n    print('line', n)"


def test_entries_come_late_and_not_always(no_docker: None, small: BaseImage) -> None:
    with cloud_with(small, "late=2s,busy=3") as cloud:
        name = cloud.submit(pool(cloud.image(LINES))).name
        request = {
            "resource_names": ["projects/my-project"],
            "filter": 'resource.type="ml_job" AND resource.labels.task_name="workerpool0-0"',
            "page_size": 5000,
        }
        seen, token, turned_away, late = {}, "", 0, set()
        while len(seen) < 2500:
            try:
                page = next(cloud.logging.list_log_entries({**request, "page_token": token}).pages)
            except exceptions.ResourceExhausted:
                turned_away += 1
                continue
            assert len(page.entries) <= 1000
            now = datetime.now(timezone.utc)
            new = [entry for entry in page.entries if entry.insert_id not in seen]
            late |= {x.insert_id for x in new if now - x.timestamp >= timedelta(seconds=2)}
            seen |= {entry.insert_id: entry.json_payload["message"] for entry in new}
            token = page.next_page_token
        assert sorted(seen.values()) == sorted(f"[rank 0] line {n}" for n in range(2500))
        assert turned_away
        assert len(late) >= 2500 // 7, "every seventh, and others where the machine is busy"
        assert cloud.wait(name).state.name == "JOB_STATE_SUCCEEDED"


@pytest.mark.parametrize(
    ("faults", "error", "words"),
    [
        ("quota=cpus", exceptions.ResourceExhausted, "exceed quota limits: .*/cpus"),
        ("permission=run.jobs", exceptions.PermissionDenied, "Permission 'run.jobs' denied"),
    ],
)
def test_quota_and_permission(
    no_docker: None, small: BaseImage, faults: str, error: type[Exception], words: str
) -> None:
    with cloud_with(small, faults) as cloud, pytest.raises(error, match=words):
        cloud.submit(pool("an/image:1"))


def test_an_answer_that_is_lost(no_docker: None, small: BaseImage) -> None:
    with cloud_with(small, "lost=1") as cloud:
        with pytest.raises(exceptions.ServiceUnavailable):
            cloud.submit(pool("127.0.0.1:1/no/image:1"))
        (job,) = cloud.jobs.list_custom_jobs(parent=PARENT)
        assert cloud.wait(job.name).state.name == "JOB_STATE_FAILED"


def test_faults_are_read() -> None:
    read = Faults.parse("preempt=workerpool1-0@30s, late=2s,busy=5,quota=cpus", SYNTAX)
    assert read == Faults((Preemption("workerpool1-0", 30.0),), quota="cpus", late=2.0, busy=5)
    assert Faults.parse("", SYNTAX) == Faults()
    by_line = Faults.parse("preempt=workerpool0-0@epoch 3: saved", SYNTAX)
    assert by_line == Faults((Preemption("workerpool0-0", text="epoch 3: saved"),))


@pytest.mark.parametrize(
    "text", ["preempt=rank3@1s", "preempt=workerpool0-0@", "late=soon", "busy=-1", "fire", "quota="]
)
def test_faults_that_can_not_be(text: str) -> None:
    with pytest.raises(OptionError, match="expected preempt=REPLICA"):
        Faults.parse(text, SYNTAX)
