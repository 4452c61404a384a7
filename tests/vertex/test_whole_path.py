"""From a cell to its results, by Google's own clients, an image, and replicas that run from it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import attach, script, submit
from distrain_nb.api import Code
from distrain_nb.config import private_home
from distrain_nb.errors import RunFailed
from distrain_nb.places.vertex.tracking import VERTEX
from distrain_nb.run import Run
from distrain_nb.tracking.request import pending
from tests.conftest import eventually, holding
from tests.image.services.bases import BaseImage, blob, small_base
from tests.rehearsal.test_sandbox import layer
from tests.vertex.packages import base_with

pytestmark = pytest.mark.usefixtures("engine")

HELLO = """
import json, os
spec = json.loads(os.environ["CLUSTER_SPEC"])
said = open(f"{train}/cat/1.txt").read()
print("hello of", spec["task"]["type"], spec["task"]["index"], "with", said)
total = 40 + int(os.environ["WORLD_SIZE"])
"""
MPI = """
from mpi4py import MPI
world = MPI.COMM_WORLD
hosts = sorted(set(world.allgather(MPI.Get_processor_name())))
total = world.allreduce(1)
"""
FAILS = """
import os
if os.environ["RANK"] == "2":
    raise ValueError("the second worker fails")
import time
time.sleep(600)
"""
RESUMES = """
import json, os, time
from pathlib import Path

kept = Path(os.environ["AIP_CHECKPOINT_DIR"], "state.json")
start = json.loads(kept.read_text())["step"] if kept.exists() else 0
print("from step", start, flush=True)
for step in range(start, 6):
    kept.write_text(json.dumps({"step": step + 1}))
    print("step", step, flush=True)
    if step == 3:
        time.sleep(600)  # until its machine is taken away
total = start
"""
TELLS = """
from distrain_nb import log_metrics
for step in range(5):
    log_metrics({"val/loss": lr / (step + 1)}, step=step)
"""


def rehearsed(code: Code, base: str, **options: Any) -> Run:
    chosen = {"primary": "n1-standard-4", "rehearse": "", **options}
    return submit(code, on="vertex", base=base, wait=True, **chosen)


@pytest.fixture(scope="session")
def with_pip(images: str) -> str:
    """As prebuilt containers are."""
    name = f"{images}/bases/pip:3.11"
    base_with("pip", "setuptools").push(name)
    return name


@pytest.mark.parametrize(
    "package",
    [pytest.param(False, marks=pytest.mark.stands_for("a rehearsal of Vertex AI")), True],
)
def test_two_pools(base: str, with_pip: str, tmp_path: Path, package: bool) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/1.txt").write_text("data of this machine")
    base = with_pip if package else base
    pools = {"workers": "2*n1-standard-4", "python_package": package}
    run = rehearsed(HELLO, base, result="total", data=f"train={tmp_path}", **pools)
    assert run.results["total"] == 43
    for rank, place in enumerate(("workerpool0 0", "workerpool1 0", "workerpool1 1")):
        assert run.logs(rank) == f"[rank {rank}] hello of {place} with data of this machine"


SCRIPT = """
import argparse, json, os
from nets.deep import scale

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--of")
args = parser.parse_args()
total = scale * args.lr + float(open(args.of).read())
print(json.loads(os.environ["CLUSTER_SPEC"])["task"]["type"], open("code/conf.txt").read())
"""


def test_a_script_travels_with_its_folder(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code" / "nets").mkdir(parents=True)
    (tmp_path / "code" / "train.py").write_text(SCRIPT)
    (tmp_path / "code" / "nets" / "deep.py").write_text("scale = 10")
    (tmp_path / "code" / "conf.txt").write_text("tracked")
    subprocess.run(["git", "init", "--quiet", "."], check=True)
    subprocess.run(["git", "add", "code"], check=True)
    kept = private_home() / "rehearsal" / "gs" / "numbers" / "some"
    kept.mkdir(parents=True)
    (kept / "one.txt").write_text("7")
    code = script("code/train.py", "--lr", 0.5, "--of=data:numbers/one.txt")
    data = "numbers=gs://numbers/some"
    run = rehearsed(code, base, workers="n1-standard-4", data=data, result="total")
    assert run.results["total"] == 12
    assert [run.logs(rank) for rank in (0, 1)] == [
        f"[rank {rank}] workerpool{rank} tracked" for rank in (0, 1)
    ]


@pytest.fixture(scope="session")
def with_mpi(images: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Open MPI, with the link that Debian's alternatives make when it is installed."""
    name = f"{images}/bases/mpi:4"
    link = layer(tmp_path_factory.mktemp("link"), ("s", "usr/bin/mpirun", "mpirun.openmpi"))
    mpi4py = base_with("mpi4py").layers[-1]
    BaseImage((*small_base("openmpi-bin").layers, mpi4py, blob(link.path))).push(name)
    return name


def test_mpirun_on_two_replicas_of_an_own_image(with_mpi: str) -> None:
    ranks = {"workers": "n1-standard-4", "ranks_per_replica": 2}
    network = {"network_attachment": "attachments/a", "no_retries": True}
    run = rehearsed(MPI, with_mpi, image=with_mpi, result="hosts,total", **ranks, **network)
    assert run.results["total"] == 4
    assert "[service] attachments/a is not used: a rehearsal has a network of its own" in run.logs()
    assert [host.rpartition("workerpool")[2][0] for host in run.results["hosts"]] == ["0", "1"]


def test_a_replica_that_fails(base: str) -> None:
    with pytest.raises(RunFailed) as failed:
        rehearsed(FAILS, base, workers="2*n1-standard-4")
    first, cause, *traceback, service = str(failed.value).splitlines()
    assert first.endswith("failed")
    assert cause == "rank 2 failed: ValueError: the second worker fails"
    assert traceback[0].startswith("Traceback")
    assert service == "Replica worker 1 exited with a non-zero status of 1."


def test_a_pipeline_is_preempted_and_resumes_from_a_checkpoint(base: str) -> None:
    trouble = "preempt=workerpool0-0@step 3,late=2s"
    run = rehearsed(RESUMES, base, result="total", pipeline=True, rehearse=trouble)
    steps = [f"step {number}" for number in range(6)]
    expected = ["from step 0", *steps[:4], "from step 4", *steps[4:]]
    assert run.logs(0).splitlines() == [f"[rank 0] {line}" for line in expected]
    assert run.results["total"] == 4
    said = run.logs().splitlines()
    assert any("[service] This is a rehearsal on one machine." in line for line in said)
    assert "[service] Replica primary 0 was preempted." in said
    assert said[-1] == "[service] Job completed successfully."


def test_a_preempted_job_is_sent_again_from_its_checkpoint(base: str) -> None:
    trouble = "preempt=workerpool0-0@step 3"
    run = rehearsed(RESUMES, base, result="total", retries=2, rehearse=trouble)
    steps = [f"step {number}" for number in range(6)]
    expected = ["from step 0", *steps[:4], "from step 4", *steps[4:]]
    assert run.logs(0).splitlines() == [f"[rank 0] {line}" for line in expected]
    assert run.results["total"] == 4
    assert (
        "[service] attempt 2 of 3, after The replica primary 0 was preempted, and retries are "
        "disabled." in run.logs().replace("Replica primary", "The replica primary")
    )


READS = """
import os
total = sum(int(open(os.path.join(train, name)).read()) for name in os.listdir(train))
print(open(more).read())
open("/gcs/pictures/none.txt")
"""


def test_data_in_buckets_are_folders_of_this_machine(base: str) -> None:
    train = private_home() / "rehearsal" / "gs" / "pictures" / "train"
    train.mkdir(parents=True)
    for number in range(3):
        (train / f"{number}.txt").write_text(str(number))
    own = private_home() / "rehearsal" / "gs" / "my-bucket" / "more"
    own.mkdir(parents=True)
    (own / "it.txt").write_text("in the job's own bucket")
    data = ("train=gs://pictures/train", "more=gs://my-bucket/more/it.txt")
    with pytest.raises(RunFailed):
        rehearsed(READS, base, data=data, bucket="my-bucket")
    said = attach().logs()
    assert "[rank 0] in the job's own bucket" in said
    assert f"/gcs/BUCKET has the files below {train.parents[1]}/BUCKET" in said


SECRETS = """
import os
found = os.environ["MINE"], os.environ["HF_TOKEN"]
"""


def test_a_variable_and_a_secret_of_the_store(base: str) -> None:
    env = ("MINE=correct-horse-battery", "HF_TOKEN=secret://hf")
    run = rehearsed(SECRETS, base, result="found", env=env)
    assert run.results["found"] == ("correct-horse-battery", "rehearsal of hf")
    found = holding(run.folder, "correct-horse")
    assert not [path for path in found if "results" not in path.parts]


def test_a_run_is_in_the_experiment_that_the_rehearsal_keeps(base: str) -> None:
    """As Google's SDK reads it, when the rehearsal has ended."""
    from google.cloud import aiplatform

    from tests.tracking.experiments import experiments, sdk

    account = "trainer@rehearsal.iam.gserviceaccount.com"
    options = {"experiment": "digits", "service_account": account, "project": "rehearsal"}
    run = rehearsed(TELLS, base, name="First try", param="lr=0.5", **options)
    assert eventually(lambda: not pending(VERTEX), 120), run.folder
    kept = private_home() / "rehearsal" / "experiments.db"
    with experiments(kept) as address, sdk(address, "rehearsal"):
        (row,) = aiplatform.get_experiment_df("digits").to_dict("records")
        found = aiplatform.ExperimentRun("first-try", "digits")
        series = found.get_time_series_data_frame()
    assert (row["run_name"], row["state"], row["param.lr"]) == ("first-try", "COMPLETE", 0.5)
    assert row["metric.val/loss"] == row["time_series_metric.val/loss"] == pytest.approx(0.1)
    assert series["val/loss"].tolist() == run.metrics()["val/loss"].tolist()
    assert not (run.folder / "rehearsal.json").exists()
