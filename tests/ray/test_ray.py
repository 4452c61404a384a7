"""Jobs on a real Ray cluster of two nodes; the last test loses one of them."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import httpx
import psutil
import pytest

import distrain_nb as d
from distrain_nb.backends.plugins import choices, option_choices
from distrain_nb.backends.remote.service import Gone
from distrain_nb.backends.settings import SettingValue
from distrain_nb.errors import OptionError, RunCancelled, RunFailed
from distrain_nb.layout import Layout
from distrain_nb.places.ray.backend import RayBackend
from distrain_nb.places.ray.dashboard import Dashboard, Headers
from distrain_nb.places.ray.plan import RaySpec
from distrain_nb.places.ray.service import RayService
from distrain_nb.worker.files.status import State
from tests.frameworks_cells import EXAMPLES
from tests.kernels import Kernel
from tests.quickstart_cells import train

from .conftest import GROUP, HEAD, SECOND, RayCluster, wait_for

pytestmark = pytest.mark.slow  # it starts a cluster

SECRET = "correct-horse-7"
DDP = """
import os
import torch, torch.distributed as dist
from distrain_nb import log_metrics
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
loss = (model(torch.ones(8, 4)) ** 2).mean()
loss.backward()
gradient = next(model.parameters()).grad.clone()
others = [torch.empty_like(gradient) for _ in range(dist.get_world_size())]
dist.all_gather(others, gradient)
assert all(torch.equal(other, gradient) for other in others)
for number in range(50):
    print("the same line from each")
print("rank", rank, "of", dist.get_world_size(), "on", os.environ["GROUP_RANK"])
if rank == 0:
    log_metrics({"loss": loss.item()}, step=1)
    print("secret of", len(os.environ["TOKEN"]))
weights = torch.arange(1000)
"""
ENDLESS = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)"


@pytest.fixture(autouse=True)
def own_home(home: Path) -> None:
    """No test sees the runs of another."""


def test_a_cell_trains_on_two_nodes_that_share_no_folder(cluster: RayCluster, home: Path) -> None:
    run = d.submit(
        DDP, **cluster.options(), workers=2, ranks_per_replica=2, name="ddp", result="weights",
        env=f"TOKEN={SECRET}", wait=True,
    )  # fmt: skip
    lines = [line for line in str(run.logs()).splitlines() if line.startswith("[rank")]
    for rank in range(4):
        own = [line for line in lines if line.startswith(f"[rank {rank}] ")]
        assert own.count(f"[rank {rank}] the same line from each") == 50
        assert f"[rank {rank}] rank {rank} of 4 on {rank // 2}" in own
    assert f"[rank 0] secret of {len(SECRET)}" in lines
    assert list(run.metrics()["loss"]) and len(run.results["weights"]) == 1000
    assert "dashboard" in json.loads((run.folder / "links.json").read_text())
    driver = httpx.get(f"{cluster.address}/api/jobs/").json()
    job = next(row for row in driver if (row["submission_id"] or "").startswith("ddp-"))
    assert SECRET not in json.dumps(job)
    assert not [p for p in home.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
    logs = httpx.get(f"{cluster.address}/api/jobs/{job['submission_id']}/logs").json()["logs"]
    assert any(f"replicas on {a}, {b}" in logs for a, b in ((HEAD, SECOND), (SECOND, HEAD)))
    assert not cluster.replicas() and not cluster.ranks()


SAVES = "from distrain_nb import on_stop\non_stop(lambda: print('saved', flush=True))\n" + ENDLESS


def test_a_job_saves_ahead_of_its_time_limit(cluster: RayCluster) -> None:
    options = cluster.options(cpus="1")
    run = d.submit(SAVES, **options, workers=2, timeout=150, signal_before=120)
    with pytest.raises(RunFailed, match="it was stopped near its time limit, 120 s ahead of"):
        run.wait()
    assert sorted(line for line in str(run.logs()).splitlines() if line.endswith("saved")) == [
        "[rank 0] saved", "[rank 1] saved",
    ]  # fmt: skip
    assert run.status.note.startswith("stopped after saving, in ")


def test_how_jobs_wait_fail_and_are_stopped(cluster: RayCluster, tmp_path: Path) -> None:
    """All at once: none takes more than a CPU, but for the one that waits."""
    options = cluster.options(cpus="1")
    broken = d.submit(
        "import os, time\nif os.environ['RANK'] == '1': raise ValueError('no luck')\n"
        "time.sleep(600)",
        **options, workers=2, name="broken",
    )  # fmt: skip
    long = d.submit(ENDLESS, **options, primary=1, name="long", folder=str(tmp_path / "shared"))
    stopped = d.submit(ENDLESS, **options, primary=1, name="stopped")
    wait_for(lambda: "begun" in str(long.logs()) and "begun" in str(stopped.logs()))
    with pytest.raises(RunFailed, match="rank 1 failed") as failed:
        broken.wait()
    assert "ValueError: no luck" in str(failed.value)
    waiting = d.submit(ENDLESS, **cluster.options(cpus="4"), workers=2, name="waiting")
    wait_for(lambda: waiting.state is State.QUEUED and waiting.status.note)
    assert waiting.status.note.startswith("needs 8 CPUs: ")
    assert "of 8 free" in waiting.status.note
    job = next(
        row["submission_id"]
        for row in httpx.get(f"{cluster.address}/api/jobs/").json()
        if (row["submission_id"] or "").startswith("stopped-")
    )
    httpx.post(f"{cluster.address}/api/jobs/{job}/stop").raise_for_status()
    for run in (long, waiting):
        run.cancel()
    for run in (long, stopped, waiting):
        with contextlib.suppress(RunCancelled):
            run.wait()
        assert run.state is State.CANCELLED
    assert (long.status.error, stopped.status.error) == ("", "stopped on the cluster")
    wait_for(lambda: not cluster.replicas() and not cluster.ranks())


@pytest.mark.timeout(1500)
def test_frameworks_run_unchanged(cluster: RayCluster, tmp_path: Path) -> None:
    """As anywhere, on two nodes; all at once."""
    options = cluster.options(cpus="0.5", placement="SPREAD")
    examples = {**EXAMPLES, "shared": EXAMPLES["reduced"]}
    runs = {
        name: d.submit(
            code, **options, **more, name=name, result="total",
            folder=str(tmp_path / "shared") if name == "shared" else "",
        )
        for name, (code, more, _) in examples.items()
    }  # fmt: skip
    for run in runs.values():
        run.wait(1200)
    results = {name: run.results["total"] for name, run in runs.items()}
    assert results == {name: example.result for name, example in examples.items()}
    for name in ("reduced", "shared"):
        said = str(runs[name].logs())
        assert "1 all-reduce (256 B) by 1 reducer" in said and "reducer 0: 1 sums; " in said
    wait_for(lambda: not cluster.replicas() and not cluster.ranks())


@pytest.mark.timeout(1500)
def test_the_quickstart_trains(cluster: RayCluster, nb: Kernel) -> None:
    train(nb, f"--on ray --address {cluster.address} --python {sys.executable} --workers 2")


@pytest.mark.stands_for("Ray")
def test_mpirun_starts_ranks_on_two_nodes(cluster: RayCluster) -> None:
    mpi = d.submit(
        "from mpi4py import MPI\nprint('sum', MPI.COMM_WORLD.allreduce(1))",
        **cluster.options(cpus="1"), workers=2, launcher="mpi", name="mpi", wait=True,
        mpi_options="--mca btl ^vader",  # the shared memory of both nodes has the same names
    )  # fmt: skip
    assert sorted(str(mpi.logs()).splitlines()) == ["[rank 0] sum 2", "[rank 1] sum 2"]


def test_what_the_cluster_lacks_is_said_before_anything_is_sent(
    cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    def found(code: str = "1", **options: object) -> dict[str, str]:
        return {f.code: f.message for f in d.check(code, **cluster.options(**options))}

    assert not found(workers=2)
    assert found(workers=3) == {
        "ray.no-room": "3 replicas need a node each (STRICT_SPREAD): the cluster has 2 with 1 CPU."
    }
    assert found(primary="node+8*A100") == {
        "ray.no-room": "no node has an accelerator A100: the cluster has none."
    }
    assert found(primary="node+8*GPU") == {
        "ray.no-room": "no node has 8 GPUs: of 2 nodes the largest has 0."
    }
    assert found(primary="large") == {
        "ray.no-room": f"no node is of the worker group large: there are {GROUP}."
    }
    assert not found(primary=GROUP)
    assert found(workers=2, launcher="mpi", placement="SPREAD") == {
        "ray.mpi-nodes": "mpirun needs a node for each of the 2 replicas, and --placement SPREAD "
        "may put two on one: take STRICT_SPREAD."
    }
    missing = d.check("1", **cluster.options(workers=2, cpus="9"))[0]
    assert missing.message == "no node has 9 CPUs: of 2 nodes the largest has 4."
    head = "%%distrain --on ray --workers 3\n1"
    [finding] = d.check("1", **cluster.options(workers=3))
    repaired = {fix.label: fix.apply(head).splitlines()[0] for fix in finding.fixes}
    assert repaired == {
        "Write `--placement SPREAD`": "%%distrain --on ray --workers 3 --placement SPREAD",
        "Take 2 replicas": "%%distrain --on ray --workers 2",
    }
    assert {
        f.severity.value for f in d.check("1", **cluster.options(workers=3, autoscaling=True))
    } == {"warning"}
    nowhere = cluster.options(address="http://127.0.0.1:9")
    assert [f.code for f in d.check("1", **nowhere)] == ["ray.no-answer"]
    with pytest.raises(OptionError, match="invalid --memory 'much': expected a size such as 64GiB"):
        d.check("1", **cluster.options(memory="much"))
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", cluster.address)
    layout = Layout.of("ray", workers="2")
    assert [choice.value for choice in choices(layout, "workers.machine")] == ["node", GROUP]
    assert len(option_choices(layout, "placement")) == 4
    settled = {"address": SettingValue(cluster.address, "a test")}
    said = {check.subject: check.result for check in RayBackend().access(settled)}
    assert said["cluster"].startswith("Ray 2.") and said["cluster"].endswith(
        "2 nodes, 8 CPUs, 0 GPUs"
    )


def test_a_job_that_the_head_has_forgotten(cluster: RayCluster, tmp_path: Path) -> None:
    spec = RaySpec(
        folder="", address=cluster.address, credentials="", driver={}, packages=(),
        python="python", run="unknown-1",
    )  # fmt: skip
    service = RayService(spec, tmp_path / "ray")
    assert service.find({}) == ""
    with pytest.raises(Gone, match="doesn't know the job unknown-1 any more"):
        service.observe("unknown-1")
    service.folder.mkdir()
    (service.folder / "driver.json").write_text(json.dumps({"phase": "ended", "code": 0}))
    assert service.observe("unknown-1").state is State.SUCCEEDED


def test_a_study_runs_its_trials_as_jobs(cluster: RayCluster, tmp_path: Path) -> None:
    cell = "from distrain_nb import log_metrics\nlog_metrics({'loss': (x - 2) ** 2}, step=1)"
    found = d.tune(
        cell, tune="x=1..4", goal="min:loss", trials=4, search="grid", parallel=2, primary=1,
        **cluster.options(cpus="1", folder=str(tmp_path / "shared")), name="bowl",
    ).wait(500)  # fmt: skip
    assert found.best.params == {"x": 2}
    jobs = [row["submission_id"] for row in httpx.get(f"{cluster.address}/api/jobs/").json()]
    assert len([job for job in jobs if (job or "").startswith("bowl")]) == 4
    values = {trial.params["x"]: trial.goals["loss"] for trial in found.all_trials()}
    assert values == {x: (x - 2) ** 2 for x in range(1, 5)}
    assert all(trial.run.state is State.SUCCEEDED for trial in found.all_trials())


RESUMES = """
import json, os, time
import torch, torch.distributed as dist
from distrain_nb import log_metrics

dist.init_process_group("gloo")
path = os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "last.json")
first, total = json.load(open(path)) if os.path.exists(path) else (0, 0.0)
for step in range(first, 40):
    value = torch.tensor(float(step))
    dist.all_reduce(value)
    total += value.item()
    if dist.get_rank() == 0:
        print("step", step)
        log_metrics(total=total, step=step)
        if (step + 1) % 5 == 0:
            with open(path + ".new", "w") as file:
                json.dump([step + 1, total], file)
            os.replace(path + ".new", path)
    time.sleep(0.1 if os.environ["DISTRAIN_ATTEMPT"] == "1" else 0)
dist.destroy_process_group()
"""


def test_a_lost_actor_is_replaced_and_training_goes_on(cluster: RayCluster, tmp_path: Path) -> None:
    run = d.submit(
        RESUMES, **cluster.options(cpus="1", folder=str(tmp_path / "shared")), workers=2,
        name="resumed", retries=2, result="total",
    )  # fmt: skip
    wait_for(lambda: "step 11" in run.logs())
    actors = [p for p in psutil.process_iter(["cmdline"]) if "ReplicaActor" in words(p)]
    actors[-1].kill()
    run.wait(300)
    lines = run.logs().splitlines()
    (mark,) = [line for line in lines if line.startswith("[service] attempt")]
    assert mark.startswith("[service] attempt 2 of 3, after ")
    assert " was lost: " in mark
    assert run.results["total"] == sum(2.0 * step for step in range(40))
    assert run.metrics()["step"].tolist() == list(range(40))
    steps = [int(line.split()[-1]) for line in lines if line.startswith("[rank 0] step")]
    assert len(steps) <= 40 + 5 + 1
    resumed = run.resume().wait(300)
    assert resumed.id != run.id and "step" not in resumed.logs()
    assert resumed.results["total"] == run.results["total"]


def words(process: psutil.Process) -> str:
    return " ".join(process.info["cmdline"] or [])


ENDS_THEN = ENDLESS.replace("while True", "while os.environ['DISTRAIN_ATTEMPT'] == '1'")


def test_a_lost_node(cluster: RayCluster, tmp_path: Path) -> None:
    """A job ends by it, and one with `--retries` goes on without the node, as the same run."""
    options = cluster.options(cpus="1", workers=2)
    run = d.submit(ENDLESS, **options, name="lost")
    again = d.submit(
        "import os\n" + ENDS_THEN, **options, name="again", retries=1, placement="SPREAD",
        folder=str(tmp_path / "shared"),
    )  # fmt: skip
    assert not run.resumable
    wait_for(lambda: all(str(each.logs()).count("begun") == 2 for each in (run, again)))
    cluster.kill(SECOND)
    try:
        with pytest.raises(RunFailed) as failed:
            run.wait()
        again.wait(300)
    finally:  # others need both nodes
        cluster.join()
    assert f"on node {SECOND}, was lost: " in str(failed.value)
    lines = str(again.logs()).splitlines()
    (mark,) = (n for n, line in enumerate(lines) if line.startswith("[service] attempt 2 of 2"))
    assert f"on node {SECOND}, was lost: " in lines[mark]
    assert sorted(lines[mark + 1 :]) == ["[rank 0] begun", "[rank 1] begun"]
    wait_for(lambda: not cluster.replicas() and not cluster.ranks())
    assert Dashboard(cluster.address, Headers()).nodes()
