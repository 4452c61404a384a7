"""What goes wrong on purpose in S3, in the logs and in answers; under bubblewrap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from botocore.exceptions import ClientError

from distrain_nb.errors import OptionError
from distrain_nb.places.sagemaker.stand_in import SYNTAX as SAGEMAKER
from distrain_nb.rehearsal.faults import Faults, Preemption
from tests.conftest import eventually
from tests.image.services.bases import BaseImage

from .training_jobs import GROUP, request, standing_in

LINES = """\
import os, socket, time, urllib.request
print("host", socket.gethostname(), socket.gethostbyname("algo-1"), socket.gethostbyname("algo-2"))
other = {"algo-1": "algo-2", "algo-2": "algo-1"}[socket.gethostname()]
with socket.create_server(("", 2222)) as server:
    while True:
        try:
            socket.create_connection((other, 2222)).close()
            break
        except OSError:
            time.sleep(0.05)
    print("met", server.accept()[1][0] == socket.gethostbyname(other))
with urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL_S3"] + "/my-bucket/hello") as file:
    print("s3", file.read().decode())
for n in range(500):
    print("line", n)
"""
FAULTS = "permission=s3:PutObject,late=3s,busy=3,lost=1"


def test_a_job_that_meets_all_of_it(no_docker: None, small: BaseImage) -> None:
    with standing_in(small, FAULTS) as (_, aws):
        aws.put(hello=b"from here")
        asked = request(aws.base, LINES, 2)
        # boto3 asks again where it gets no answer, and the job is there
        with pytest.raises(ClientError, match="already exists"):
            aws.jobs.create_training_job(**asked)
        name = asked["TrainingJobName"]
        job = aws.wait(name)
        assert job["FailureReason"].startswith("ClientError: Artifact upload failed:S3 refused")
        assert "(AccessDenied: Access Denied)" in job["FailureReason"]
        with pytest.raises(ClientError, match="Rate exceeded"):
            for _ in range(3):
                aws.impatient("logs").describe_log_streams(logGroupName=GROUP)
        while len(aws.said(name)) < 1006:
            pass
        late = [e for e in aws.events(name) if e["ingestionTime"] >= e["timestamp"] + 3000]
        assert 1006 // 7 <= len(late) < 1006
        lines = aws.said(name, "algo-2-")
        assert {"host algo-2 10.77.0.1 10.77.0.2", "met True", "s3 from here"} < set(lines)
        assert {f"line {n}" for n in range(500)} < set(lines)


def test_faults_are_read() -> None:
    read = Faults.parse("spot=algo-2@30s,spot=algo-1@step 7, permission=iam:PassRole", SAGEMAKER)
    losses = (Preemption("algo-2", 30.0), Preemption("algo-1", text="step 7"))
    assert read == Faults(losses, permission="iam:PassRole")


@pytest.mark.parametrize(
    "text", ["preempt=workerpool0-0@1s", "spot=rank3@1s", "spot=algo-1", "permission=PassRole"]
)
def test_faults_that_can_not_be(text: str) -> None:
    with pytest.raises(OptionError, match="expected spot=algo-N@SECONDSs"):
        Faults.parse(text, SAGEMAKER)


REHEARSAL = """\
import time
from tests.image.services.bases import small_base
from tests.rehearsal.training_jobs import standing_in

with standing_in(small_base()) as (_, aws):
    name = aws.submit("import time; print('ready'); time.sleep(600)", 2)
    aws.wait_for(name, "ready")
    print("ready", flush=True)
    time.sleep(600)
"""


def test_nothing_is_left_when_it_is_killed(no_docker: None) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", REHEARSAL]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    started = psutil.Process(process.pid).children(recursive=True)
    assert {"docker-registry", "bwrap", "python3", "sleep"} <= {one.name() for one in started}
    process.kill()
    process.wait()
    process.stdout.close()
    assert eventually(lambda: not any(one.is_running() for one in started))
