"""AWS's own toolkit starts what script mode stages, with the hyperparameters that we send."""

from __future__ import annotations

import contextlib
import json
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from distrain_nb.backends.remote.delivery import Laid
from distrain_nb.backends.sagemaker.delivery import write_archive
from distrain_nb.worker.rank import values
from distrain_nb.worker.replica import tf_config
from tests.sagemaker.cells import PARAMETER_SERVERS
from tests.sagemaker.jobs import laid, planned
from tests.sagemaker.toolkit import toolkit
from tests.worker.hosts import NAMES, Ended, Hosts, finish, network

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

# Ten interpreters that import frameworks; the MPI job alone sleeps for half a minute.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


MPI = """
from mpi4py import MPI
import os

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print("sum", total, "channel", os.environ["SM_CHANNEL_TRAINING"])
answer = total
"""

TORCH = """
import os
import torch.distributed as dist
import torch

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print("sum", total.item(), "local", os.environ["LOCAL_RANK"], "on", os.environ["SM_CURRENT_HOST"])
answer = total.item()
"""


VARIABLES = """
import json
from sagemaker_training.environment import Environment
from distrain_nb.worker.replica.sagemaker import variables

print(json.dumps([Environment().to_env_vars(), variables()]))
"""

# Each job: the framework container's own module, the cell, its hosts and its launcher.
JOBS = {
    "mpi": ("sagemaker_pytorch_container.training:main", MPI, NAMES[:1]),
    "torchrun": ("sagemaker_pytorch_container.training:main", TORCH, NAMES),
    "parameter-server": (
        "sagemaker_tensorflow_container.training:main",
        PARAMETER_SERVERS,
        NAMES,
    ),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Hosts, list[Ended]]]:
    """All jobs, at once: the toolkit's MPI sleeps half a minute before it ends."""
    toolkit()
    with contextlib.ExitStack() as stack:
        jobs = {}
        for launcher in JOBS:
            namespaces = stack.enter_context(network())
            hosts = Hosts(tmp_path_factory.mktemp("jobs") / launcher, namespaces)
            jobs[launcher] = hosts, start(hosts, launcher)
        return {name: (hosts, finish(started)) for name, (hosts, started) in jobs.items()}


def start(hosts: Hosts, launcher: str) -> list[subprocess.Popen[str]]:
    """The hosts of a job in script mode, each with what the service lays out for it."""
    module, source, names = JOBS[launcher]
    ranks = 2 if len(names) == 1 else 1
    layout = laid(f"{len(names)}*ml.g4dn.12xlarge", launcher=launcher, ranks_per_replica=ranks)
    plan = planned(layout, code=source, results=("answer",), options={"python_package": True})
    sent = dict(plan.request["HyperParameters"])
    if "model_dir" in sent:  # TensorFlow's container asks S3 where a bucket is
        sent["model_dir"] = json.dumps("/opt/ml/model")
    hosts.job(source, names, sent, {"training": {"TrainingInputMode": "File"}})
    program = Laid(hosts.folder / "program", plan.job.program.requirements)
    archive = hosts.folder / "sourcedir.tar.gz"
    with archive.open("wb") as file:
        write_archive(program, "tensorflow" if "model_dir" in sent else "pytorch", file)
    for name in names:
        with tarfile.open(archive) as tar:
            tar.extractall(hosts.ml(name) / "code", filter="data")
    environment = {**plan.request["Environment"], **told(), "SAGEMAKER_TRAINING_MODULE": module}
    command = (sys.executable, str(toolkit() / "bin" / "train"))
    return [hosts.start(name, command, **environment) for name in names]


def told() -> dict[str, str]:
    return {"PYTHONPATH": str(toolkit()), "AWS_REGION": "us-west-2"}


def labels(ended: Ended, text: str) -> list[str]:
    """Of the lines with that text; mpirun and the toolkit write something before them."""
    lines = [line for line in ended.lines if text in line]
    return sorted(line[line.index("[rank") : line.index("] ") + 1] for line in lines)


Jobs = dict[str, tuple[Hosts, list[Ended]]]


def test_mpi(ended: Jobs) -> None:
    _, (host,) = ended["mpi"]
    assert host.status == 0, host
    assert labels(host, "sum 3 channel /opt/ml/input/data/training") == ["[rank 0]", "[rank 1]"]


def test_torchrun(ended: Jobs) -> None:
    hosts, both = ended["torchrun"]
    for number, host in enumerate(both):
        assert host.status == 0, host
        text = f"sum 3.0 local 0 on {NAMES[number]}"
        assert labels(host, text) == [f"[rank {number}]"], host
    assert values.load(hosts.ml("algo-1") / "output/data/results")["answer"] == 3.0
    assert not (hosts.ml("algo-2") / "output/data/results").exists()


def test_parameter_servers(ended: Jobs) -> None:
    _, both = ended["parameter-server"]
    for number, host in enumerate(both):
        assert host.status == 0, host
        told = json.dumps(tf_config.parameter_servers(NAMES, number, "master"))
        assert labels(host, f"TF_CONFIG {told}") == [f"[rank {number}]"], host
        assert labels(host, "learned True in 200 steps") == [f"[rank {number}]"], host


def test_our_worker_sets_the_same_variables(tmp_path: Path) -> None:
    hyperparameters = {
        "epochs": "60",
        "batch-size": "256",
        "names": '["a", "b"]',
        "plain": "text",
        "sagemaker_program": '"train.py"',
        "sagemaker_container_log_level": "10",
    }
    channels = {"training": {"TrainingInputMode": "File"}, "eval": {"TrainingInputMode": "Pipe"}}
    with network() as namespaces:
        hosts = Hosts(tmp_path / "job", namespaces)
        hosts.job("pass", NAMES, hyperparameters, channels)
        command = (sys.executable, "-c", VARIABLES)
        (said,) = finish([hosts.start("algo-2", command, **told())])
    assert said.status == 0, said
    theirs, ours = json.loads(said.lines[-1])
    assert ours == {name: theirs[name] for name in ours}
    # These are of the script that the toolkit runs, and of the toolkit itself.
    assert theirs.keys() - ours.keys() == {
        "SM_DISTRIBUTION_INSTANCE_GROUPS",
        "SM_FRAMEWORK_MODULE",
        "SM_FRAMEWORK_PARAMS",
        "SM_MODULE_DIR",
        "SM_MODULE_NAME",
        "SM_TRAINING_ENV",
        "SM_USER_ENTRY_POINT",
    }
