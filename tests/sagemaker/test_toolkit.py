"""AWS's own toolkit starts what script mode stages, with the hyperparameters that we send: cells,
and the source document's estimators as scripts."""

from __future__ import annotations

import contextlib
import json
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from distrain_nb.backends.remote.delivery import ProgramFolder
from distrain_nb.places.sagemaker.delivery import write_archive
from distrain_nb.worker.rank import values
from distrain_nb.worker.replica import contracts
from scripts.horovod_wheel import wheel
from tests.layout.documents import ESTIMATOR_HOROVOD, ESTIMATOR_SERVERS
from tests.sagemaker.cells import HOROVOD_SCRIPT, PARAMETER_SERVERS_SCRIPT
from tests.sagemaker.jobs import laid, of_estimator, planned
from tests.sagemaker.toolkit import toolkit
from tests.tensorflow_cells import leave_out
from tests.worker.hosts import NAMES, Ended, Hosts, finish, network

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from distrain_nb.api import Code
    from distrain_nb.layout import Layout

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

PACKAGES = "/opt/packages"
WITHOUT = "/opt/without"
PYTORCH = "sagemaker_pytorch_container.training:main"
TENSORFLOW = "sagemaker_tensorflow_container.training:main"

# Each job: the framework container's own module, its hosts, and what lays it out in a folder. With
# MPI the toolkit wants SSH between hosts, unless there is but one. The document's estimators are as
# they are but for that, and for TensorFlow's version, whose Python is too old for our worker.
JOBS: dict[str, tuple[str, Sequence[str], Callable[[Path], tuple[Layout, Code]]]] = {
    "mpi": (PYTORCH, NAMES[:1], lambda _: (_on_gpus(1, "mpi", 2), MPI)),
    "torchrun": (PYTORCH, NAMES, lambda _: (_on_gpus(2, "torchrun", 1), TORCH)),
    "parameter-servers": (
        TENSORFLOW,
        NAMES,
        lambda folder: of_estimator(
            ESTIMATOR_SERVERS, PARAMETER_SERVERS_SCRIPT, folder, framework=None
        ),
    ),
    "horovod": (
        PYTORCH,
        NAMES[:1],
        lambda folder: of_estimator(
            ESTIMATOR_HOROVOD.replace("host = 1", "host = 2").replace("count = 2", "count = 1"),
            HOROVOD_SCRIPT,
            folder,
            framework=None,
        ),
    ),
}


def _on_gpus(hosts: int, launcher: str, ranks: int) -> Layout:
    return laid(f"{hosts}*ml.g4dn.12xlarge", launcher=launcher, ranks_per_replica=ranks)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Hosts, list[Ended]]]:
    """All jobs, at once: the toolkit's MPI sleeps half a minute before it ends."""
    toolkit()
    packages = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(wheel()) as file:
        file.extractall(packages)
    # PyTorch's containers have no TensorFlow, which the toolkit and its writers would import.
    (packages / "tensorflow.py").write_text("raise ImportError\n")
    without = leave_out(tmp_path_factory.mktemp("without"))
    with contextlib.ExitStack() as stack:
        jobs = {}
        for name in JOBS:
            namespaces = stack.enter_context(network())
            folder = tmp_path_factory.mktemp("jobs")
            readable = {PACKAGES: packages} if JOBS[name][0] == PYTORCH else {WITHOUT: without}
            hosts = Hosts(folder / name, namespaces, readable)
            jobs[name] = hosts, start(hosts, folder, *JOBS[name])
        return {name: (hosts, finish(started)) for name, (hosts, started) in jobs.items()}


def start(
    hosts: Hosts,
    folder: Path,
    module: str,
    names: Sequence[str],
    lay: Callable[[Path], tuple[Layout, Code]],
) -> list[subprocess.Popen[str]]:
    """The hosts of a job in script mode, each with what the service lays out for it."""
    layout, code = lay(folder)
    plan = planned(layout, code=code, results=("answer",), options={"python_package": True})
    sent = dict(plan.request["HyperParameters"])
    if "model_dir" in sent:  # TensorFlow's container asks S3 where a bucket is
        sent["model_dir"] = json.dumps("/opt/ml/model")
    hosts.job(plan.job.program, names, sent, {"training": {"TrainingInputMode": "File"}})
    program = ProgramFolder(hosts.folder / "program", plan.job.program.requirements)
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
    """Return what hosts have in their environment."""
    # Containers have no 300 packages that pip compares. It wants "no" for "no warnings".
    return {
        "PYTHONPATH": f"{toolkit()}:{PACKAGES}:{WITHOUT}",
        "AWS_REGION": "us-west-2",
        "PIP_NO_WARN_CONFLICTS": "no",
    }


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


def test_the_estimator_with_parameter_servers(ended: Jobs) -> None:
    _, both = ended["parameter-servers"]
    for number, host in enumerate(both):
        assert host.status == 0, host
        told = json.dumps(contracts.parameter_servers(NAMES, number, "master"))
        assert labels(host, f"TF_CONFIG {told}") == [f"[rank {number}]"], host
        assert labels(host, "learned True in 120 steps") == [f"[rank {number}]"], host


def test_the_estimator_with_horovod(ended: Jobs) -> None:
    hosts, (host,) = ended["horovod"]
    assert host.status == 0, host
    assert labels(host, "of 2 same True") == ["[rank 0]", "[rank 1]"], host
    answer = values.load(hosts.ml("algo-1") / "output/data/results")["answer"]
    assert answer["world"] == 2
    assert answer["loss"] < 1.0  # ten classes: untrained, it is above 2.3


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
