"""A `ModelTrainer` of the real SDK 3 with our distributions, and what it sends, really run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sagemaker.toolkit import sdk
from tests.worker.hosts import NAMES, Hosts, finish, network

pytestmark = pytest.mark.slow

SCRIPT = """
import os, sys
from mpi4py import MPI
import beside

world = MPI.COMM_WORLD
print("sum", world.allreduce(1), "seen", os.environ["SEEN"], *sys.argv[1:])
"""


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the SDK has sent, by the distribution's name."""
    folder, code = tmp_path_factory.mktemp("sent"), tmp_path_factory.mktemp("code")
    (code / "train.py").write_text(SCRIPT)
    (code / "beside.py").write_text("")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(sdk()), str(Path(__file__).parents[2])]),
        "AWS_DEFAULT_REGION": "us-west-2",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "SAGEMAKER_VALIDATE_ROLE": "false",
    }
    command = [
        sys.executable,
        "-m",
        "tests.sagemaker.model_trainer",
        str(folder),
        str(code / "train.py"),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_what_is_sent_runs_on_both_hosts(sent: Path, tmp_path: Path) -> None:
    request = json.loads((sent / "horovod/request.json").read_text())
    start = request["AlgorithmSpecification"]
    command = (*start["ContainerEntrypoint"], *start["ContainerArguments"])
    with network() as namespaces:
        hosts = Hosts(tmp_path / "job", namespaces)
        hosts.job("pass", NAMES, request["HyperParameters"], {"code": {}, "sm_drivers": {}})
        for name in NAMES:
            for channel in ("code", "sm_drivers"):
                source = sent / "horovod" / channel
                shutil.copytree(source, hosts.ml(name) / "input/data" / channel)
        told = {"TRAINING_JOB_NAME": request["TrainingJobName"]}
        both = finish([hosts.start(name, command, **told) for name in NAMES])
    for number, ended in enumerate(both):
        assert ended.status == 0, ended
        assert sorted(line for line in ended.lines if "sum" in line) == [
            f"[rank {rank}] sum 4 seen 1 --epochs 60 --batch-size 256"
            for rank in (2 * number, 2 * number + 1)
        ]


def test_parameter_servers_are_asked_for(sent: Path) -> None:
    drivers = sent / "servers/sm_drivers"
    assert json.loads((drivers / "distributed.json").read_text()) == {
        "process_count_per_node": 1,
        "mpi_options": "",
        "launcher": "parameter-server",
    }
    assert (
        drivers / "distributed_drivers/distrain_nb/worker/supervisor/parameter_server.py"
    ).exists()
    assert "distributed_drivers/distrain_driver.py" in (drivers / "sm_train.sh").read_text()
