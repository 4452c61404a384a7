"""From a cell to its results, by boto3, an image, and hosts that run from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import script, submit
from distrain_nb.api import Code
from distrain_nb.config import home
from distrain_nb.errors import RunFailed
from distrain_nb.layout.formats import read_any
from distrain_nb.run import Run
from tests.conftest import holding

pytestmark = pytest.mark.usefixtures("engine")

READS = """
import os, socket
from distrain_nb import log_metrics

data = "/opt/ml/input/data"
share = sorted(os.listdir(f"{data}/sharded"))
print("host", os.environ["SM_CURRENT_HOST"], "of", os.environ["WORLD_SIZE"], "has", share)
passes = []
for number in range(2):
    with open(piped.replace("_0", f"_{number}")) as pipe:
        passes.append(len(pipe.readlines()))
    log_metrics(step=number, lines=passes[-1])
    print("loss =", 0.5 / (number + 1))
total = sum(passes)
print("known as", socket.gethostname(), "with", open(f"{mine}/cat/1.txt").read())
"""
RESUMES = """
import json, os, time
from pathlib import Path

kept = Path("/opt/ml/checkpoints/state.json")
start = json.loads(kept.read_text())["step"] if kept.exists() else 0
print("from step", start, flush=True)
if not start:
    if os.environ["RANK"] == "0":
        kept.write_text(json.dumps({"step": 7}))
        print("saved", flush=True)
    time.sleep(600)
total = start
"""
FAILS = """
import os, time
if os.environ["RANK"] == "1":
    raise ValueError("the second host fails")
time.sleep(600)
"""


@pytest.fixture(scope="module")
def data(engine: None) -> Iterator[None]:
    """What a rehearsal's bucket has."""
    folder = home() / "rehearsal" / "s3" / "my-data" / "train"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.txt").write_text("a line\n" * (number + 1))
    yield


def rehearsed(code: Code, base: str, **options: Any) -> Run:
    chosen = {"workers": "2*ml.m5.xlarge", "rehearse": "", **options}
    return submit(code, on="sagemaker", base=base, wait=True, **chosen)


def test_two_hosts_and_their_data(base: str, data: None, tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/1.txt").write_text("data of this machine")
    run = rehearsed(
        READS,
        base,
        result="total",
        metric="loss=loss = ([0-9.]+)",
        channel="sharded=s3://my-data/train,sharded",
        data=("piped=s3://my-data/train,mode=Pipe", f"mine={tmp_path},mode=FastFile"),
    )
    assert run.results["total"] == 12
    found = [run.logs(rank).splitlines() for rank in (0, 1)]
    assert found[0][0] == "[rank 0] host algo-1 of 2 has ['0.txt', '2.txt']"
    assert found[1][0] == "[rank 1] host algo-2 of 2 has ['1.txt']"
    assert found[0][-1] == "[rank 0] known as algo-1 with data of this machine"
    assert "This is a rehearsal on one machine. Replicas run as containers" in run.logs()
    values = run.metrics()
    assert list(values["lines"]) == [6, 6]
    assert list(values["loss"]) == [0.5, 0.25]


ESTIMATOR = """
from sagemaker.pytorch import PyTorch

estimator = PyTorch(
    source_dir="code", entry_point="train.py", role=role, framework_version="2.6",
    instance_count=2, instance_type="ml.m5.xlarge",
    hyperparameters={"epochs": 60, "batch-size": 256},
)
estimator.fit(inputs)
"""
SCRIPT = """
import argparse, os
from nets.deep import scale

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--batch-size", type=int)
parser.add_argument("--of")
args = parser.parse_args()
total = scale * args.epochs + args.batch_size + int(open(args.of).read())
print(os.environ["SM_CURRENT_HOST"], open("code/conf.txt").read())
"""


@pytest.mark.stands_for("a rehearsal of SageMaker")
def test_a_script_as_an_estimator_names_it(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code" / "nets").mkdir(parents=True)
    (tmp_path / "code" / "train.py").write_text(SCRIPT)
    (tmp_path / "code" / "nets" / "deep.py").write_text("scale = 10")
    (tmp_path / "code" / "conf.txt").write_text("configured")
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "one.txt").write_text("7")
    found = read_any(ESTIMATOR)
    code = script(*found.script, "--of", "data:numbers/one.txt")
    data = f"numbers={tmp_path / 'numbers'}"
    run = rehearsed(code, base, result="total", include="code/conf.txt", data=data)
    assert run.results["total"] == 863
    assert [run.logs(rank) for rank in (0, 1)] == [
        f"[rank {rank}] algo-{rank + 1} configured" for rank in (0, 1)
    ]


def test_interrupted_and_resumed_from_a_checkpoint(base: str) -> None:
    two_groups = {"primary": "ml.c5.xlarge", "workers": "ml.m5.xlarge"}
    run = rehearsed(
        RESUMES, base, result="total", spot=True, rehearse="spot=algo-2@saved", **two_groups
    )
    said = run.logs(0).splitlines()
    assert said == ["[rank 0] from step 0", "[rank 0] saved", "[rank 0] from step 7"]
    assert run.results["total"] == 7


def test_a_host_that_fails(base: str) -> None:
    with pytest.raises(RunFailed, match="ValueError: the second host fails"):
        rehearsed(FAILS, base)


def test_a_role_that_may_not_read(base: str, data: None) -> None:
    with pytest.raises(RunFailed, match=r"GetObject \(AccessDenied"):
        data = "piped=s3://my-data/train"
        rehearsed("print(piped)", base, data=data, rehearse="permission=s3:GetObject")


SECRETS = """
import os
found = os.environ["MINE"], os.environ["HF_TOKEN"]
"""


def test_a_variable_and_a_secret_of_the_store(base: str) -> None:
    env = ("MINE=correct-horse-battery", "HF_TOKEN=secret://hf")
    run = rehearsed(SECRETS, base, result="found", env=env, workers="ml.m5.xlarge")
    assert run.results["found"] == ("correct-horse-battery", "rehearsal of hf")
    found = holding(run.folder, "correct-horse")
    assert not [path for path in found if "results" not in path.parts]
