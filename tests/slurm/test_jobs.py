"""Jobs on a real Slurm cluster: what runs there, how it ends, and what is said of it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from IPython.core.completer import CompletionContext

import distrain_nb as d
from distrain_nb.backends.plugins import choices, option_choices
from distrain_nb.backends.remote import carrier_start
from distrain_nb.errors import DistrainError, RunFailed
from distrain_nb.layout import Layout, Pool
from distrain_nb.layout.formats import exports
from distrain_nb.magics.completion import match
from distrain_nb.places.slurm import sinfo
from distrain_nb.places.slurm.commands import Commands
from distrain_nb.run import Run
from distrain_nb.worker.files.status import Status
from tests.conftest import eventually, holding
from tests.slurm.cluster import Cluster

pytestmark = pytest.mark.slow

SECRET = "correct-horse-7"
REDUCED = """
import os
import torch
import torch.distributed as dist
from distrain_nb import log_metrics
dist.init_process_group("gloo")
number = torch.tensor(float(os.environ["RANK"]))
dist.all_reduce(number)
total = float(number)
print("sum", total, "on node", os.environ["SLURM_NODEID"], len(os.environ["WORD"]))
print("notebook's token:", os.environ.get("NOTEBOOK_TOKEN"), open("beside.txt").read())
log_metrics({"loss": total}, step=1)
"""
POOLS = """
import json, os, pathlib, time
kind = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
print(kind, flush=True)
pathlib.Path(f"up-{kind}").touch()
while kind != "chief" or len(list(pathlib.Path().glob("up-*"))) < 4:
    time.sleep(0.1)
"""
LONG = """
import signal, sys, time
def end(*_):
    print("asked to end", flush=True)
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
print("begun", flush=True)
while True:
    time.sleep(0.1)
"""
RAISES = """
import os, time
if os.environ["RANK"] == "1":
    raise ValueError("no luck")
time.sleep(600)
"""


def begun(run: Run, ranks: int = 1) -> bool:
    return str(run.logs()).count("begun") >= ranks


def job_of(cluster: Cluster, run: Run) -> str:
    return (Path(run.links["folder"]) / "job").read_text().strip()


def ended(run: Run) -> bool:
    return run.status.state.final


@pytest.mark.stands_for("Slurm")
def test_two_nodes_of_two_ranks(
    slurm: Cluster, work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (work / "beside.txt").write_text("data beside the notebook")
    monkeypatch.setenv("NOTEBOOK_TOKEN", "hf_" + "x1Y2z3" * 6)
    monkeypatch.setenv("SLURM_MEM_PER_GPU", "7")  # a notebook that itself runs in a job has such
    options = {"on": "slurm", "workers": 2, "ranks_per_replica": 2, "name": "sum"}
    run = d.submit(REDUCED, **options, result="total", env=f"WORD={SECRET}")
    run.wait()
    lines = str(run.logs()).splitlines()
    for rank, node in enumerate((0, 0, 1, 1)):
        assert f"[rank {rank}] sum 6.0 on node {node} {len(SECRET)}" in lines
        assert f"[rank {rank}] notebook's token: None data beside the notebook" in lines
    assert dict(run.results) == {"total": 6.0}
    assert run.metrics()["loss"].tolist() == [6.0]
    assert holding(tmp_path, SECRET) == holding(slurm.folder, SECRET) == []


def test_ends_and_their_causes(slurm: Cluster, work: Path) -> None:
    """A rank raises; the time is over; somebody cancels from here, and behind our back; a job that
    waits says for what. All at once."""
    small = {"on": "slurm", "cpus": 1}
    raising = d.submit(RAISES, **small, workers=2, name="raising")
    limited, here, behind = (
        d.submit(LONG, **small, workers=1, name=name) for name in ("limited", "here", "behind")
    )
    assert all(eventually(lambda run=run: begun(run)) for run in (limited, here, behind))
    slurm.run("scontrol", "update", f"JobId={job_of(slurm, limited)}", "EndTime=now+1")
    waiting = d.submit("1", on="slurm", workers=4, exclusive=True, name="waiting")
    assert eventually(lambda: waiting.status.note.startswith("waiting for nodes"))
    behind_it = d.submit("1", on="slurm", workers=4, exclusive=True, name="later")
    assert eventually(lambda: "; 1 job before it" in behind_it.status.note)
    assert eventually(lambda: waiting.status.phase == "waiting in the queue")
    assert str(waiting.state) == "queued"
    assert eventually(lambda: "expected to start at" in waiting.status.note)
    here.cancel()
    slurm.run("scancel", job_of(slurm, behind))
    behind_it.cancel()
    waiting.cancel()
    runs = (raising, limited, here, behind, waiting, behind_it)
    assert all(eventually(lambda run=run: ended(run), 90) for run in runs)
    states = [str(run.state) for run in runs]
    assert states == ["failed", "failed", "cancelled", "cancelled", "cancelled", "cancelled"]
    errors = [run.status.error for run in runs]
    assert errors[0].startswith("rank 1 failed") and "ValueError: no luck" in errors[0]
    assert errors[1].startswith("the job reached its time limit and was ended by Slurm")
    assert errors[2:] == ["", "cancelled in Slurm, by scancel", "", ""]
    assert "asked to end" in str(here.logs())


def test_the_controller_is_away_and_forgets(
    slurm: Cluster, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job goes on, its log too; what is submitted meanwhile arrives later; a job whose end
    nobody saw is known by what it left."""
    running = d.submit(
        "import time\nprint('begun', flush=True)\nfor n in range(80): print(n); time.sleep(0.1)",
        on="slurm", workers=1, name="running",
    )  # fmt: skip
    unseen = d.submit(LONG, on="slurm", workers=1, name="unseen")
    assert eventually(lambda: begun(running) and begun(unseen))
    monkeypatch.setattr(carrier_start, "START_AGAIN_AFTER_S", 0.0)
    carrier = Status.read(unseen.folder).supervisor
    assert carrier is not None
    os.kill(carrier.pid, signal.SIGKILL)
    slurm.run("scancel", job_of(slurm, unseen))
    assert eventually(lambda: "asked to end" in said(unseen))
    slurm.end("slurmctld", signal.SIGTERM)  # it saves its state
    later = d.submit("print('hello')", on="slurm", workers=1, name="later")
    assert eventually(lambda: "doesn't answer" in running.status.note or ended(running))
    assert eventually(lambda: ended(running)) and str(running.state) == "succeeded"
    assert str(running.logs()).count("\n") >= 80
    assert not ended(later) and later.status.error == ""
    slurm.start_controller()
    assert eventually(lambda: ended(later), 120) and str(later.state) == "succeeded"
    # COMPLETING lasts for 45 s where the controller was away.
    assert eventually(lambda: job_of(slurm, unseen) not in queued(slurm), 120)
    assert not Status.read(unseen.folder).state.final
    assert eventually(lambda: ended(unseen)) and str(unseen.state) == "cancelled"
    assert unseen.status.error == "cancelled in Slurm, by scancel"


def said(run: Run) -> str:
    """What the replicas have written, whether or not it has been fetched."""
    folder = Path(run.links["folder"]) / "replicas"
    return "".join(path.read_text() for path in folder.glob("*/log.tsv"))


def queued(cluster: Cluster) -> list[str]:
    return cluster.run("squeue", "-h", "-t", "all", "-o", "%i").stdout.split()


def test_what_sbatch_refuses(slurm: Cluster, work: Path) -> None:
    with pytest.raises(RunFailed) as refused:
        d.submit("1", on="slurm", constraint="fast&nope", name="refused").wait()
    assert "--constraint (fast&nope): sbatch refuses the job:" in str(refused.value)
    assert "Invalid feature specification" in str(refused.value)


def test_trials_are_jobs_and_pools_are_nodes(slurm: Cluster, work: Path) -> None:
    """A study of eight trials, four at a time; a primary, a worker, a server and an evaluator, each
    on a node of its own, which end with the primary; ranks that mpirun starts, within a job of
    Slurm's."""
    report = "from distrain_nb import log_metrics\nloss = (lr - 0.5) ** 2\n"
    study = d.tune(
        report + "log_metrics({'loss': loss}, step=1)",
        on="slurm", cpus=1, tune="lr=0.1|0.2|0.3|0.4|0.5|0.6|0.7|0.8", goal="min:loss", trials=8,
        parallel=4, search="grid",
    )  # fmt: skip
    pools = d.submit(
        POOLS, on="slurm", primary=1, workers=1, servers=1, evaluators=1, cpus=1,
        launcher="tensorflow",
    )  # fmt: skip
    mpi = d.submit(
        "from mpi4py import MPI\nprint('sum', MPI.COMM_WORLD.allreduce(1))",
        on="slurm", ranks_per_replica=2,
    )  # fmt: skip
    for run in (pools, mpi):
        run.wait()
    kinds = {line.rpartition(" ")[2] for line in str(pools.logs()).splitlines()}
    assert kinds == {"chief", "worker", "ps", "evaluator"}
    assert sorted(str(mpi.logs()).splitlines()) == ["[rank 0] sum 2", "[rank 1] sum 2"]
    study.wait()
    assert study.best.params == {"lr": 0.5} and len(study.trials) == 8
    values = {trial.params["lr"]: trial.goals["loss"] for trial in study.all_trials()}
    assert values == {lr: pytest.approx((lr - 0.5) ** 2) for lr in values} and len(values) == 8
    trials = [run for run in d.runs() if run.name.startswith("study-")]
    assert len({job_of(slurm, run) for run in trials}) == 8


ITS_VARIABLES = """
import os
print({name: os.environ.get(name) for name in ("SLURM_JWT", "SLURM_JOB_NAME", "SUMMER")})
print(os.environ["SLURM_SUBMIT_DIR"] == os.getcwd(), os.environ["PATH"])
"""


@pytest.mark.parametrize("option", ["--comment=none", "--export=ALL"])
def test_no_job_has_the_token_by_which_sbatch_logs_in(
    option: str, slurm: Cluster, work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = slurm.token()
    monkeypatch.setenv("SLURM_JWT", token)
    monkeypatch.setenv("SUMMER", "été=\n1")
    run = d.submit(ITS_VARIABLES, on="slurm", sbatch=["--hold", option], name="theirs")
    assert eventually(lambda: "held" in run.status.note)
    found = holding(slurm.folder, token)
    (waiting,) = slurm.run("squeue", "-h", "-o", "%i").stdout.split()
    slurm.run("scontrol", "release", waiting)
    run.wait()
    assert found == holding(slurm.folder, token) == holding(tmp_path, token) == []
    variables, others = str(run.logs()).splitlines()
    (name,) = (row.name for row in Commands().jobs() if row.job == job_of(slurm, run))
    expected = {"SLURM_JWT": None, "SLURM_JOB_NAME": name, "SUMMER": "été=\n1"}
    assert variables == f"[rank 0] {expected}"
    assert others == f"[rank 0] True {os.environ['PATH']}"


def test_an_exported_script_is_one_for_sbatch(slurm: Cluster, tmp_path: Path) -> None:
    layout = Layout.from_line("--on slurm --workers 2*gpu:a100:2 --timeout 90m")
    path = tmp_path / "job.sh"
    path.write_text(exports(layout)["slurm-sbatch"])
    answer = slurm.run("sbatch", "--test-only", str(path)).stderr
    assert "to start at" in answer and "on nodes node[1-2]" in answer


def test_one_question_for_all_jobs(slurm: Cluster, work: Path) -> None:
    """Four runs ask the controller no more often than one does, and have one carrier."""
    runs = [d.submit("1", on="slurm", sbatch="--hold", name=f"held{n}") for n in range(4)]
    assert all(eventually(lambda run=run: "held" in run.status.note) for run in runs)
    assert len({run.status.supervisor for run in runs}) == 1
    slurm.run("sdiag", "--reset")
    begin = time.monotonic()
    time.sleep(4)
    asked = slurm.run("sdiag").stdout
    passed = time.monotonic() - begin
    for run in runs:
        run.cancel()
    (line,) = [line for line in asked.splitlines() if "REQUEST_JOB_INFO" in line]
    assert int(line.partition("count:")[2].split()[0]) <= 2 * passed, line


def test_a_job_of_higher_priority_takes_the_nodes(slurm: Cluster, work: Path) -> None:
    slurm.wait_idle()
    run = d.submit(LONG, on="slurm", workers=1, name="preempted")
    assert eventually(lambda: begun(run))
    slurm.run("sbatch", "-p", "urgent", "-N4", "--exclusive", "-o", "/dev/null", "--wrap", "true")
    assert eventually(lambda: ended(run))
    assert str(run.state) == "failed"
    assert run.status.error.startswith("a job of higher priority took the nodes (preempted)")


# It has saved something when it says so; its second attempt ends.
SAVED_THEN_LOST = """
import os, time
path = os.path.join(os.environ["AIP_CHECKPOINT_DIR"], os.environ["RANK"])
os.makedirs(os.path.dirname(path), exist_ok=True)
saved = open(path).read() if os.path.exists(path) else ""
if not saved:
    open(path, "w").write(f"of rank {os.environ['RANK']}")
assert len(os.environ["WORD"]) == 15
print("begun on", os.environ["SLURMD_NODENAME"], "with", saved, flush=True)
while not saved:
    time.sleep(0.1)
"""


def test_a_node_dies(slurm: Cluster, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job ends by it, and one with `--retries` goes on without the node, as the same run."""
    run = d.submit(LONG, on="slurm", workers=4, cpus=1, name="lost")
    again = d.submit(
        SAVED_THEN_LOST, on="slurm", workers=2, cpus=1, name="again", retries=1, result="saved",
        env=f"WORD={SECRET}",
    )  # fmt: skip
    assert eventually(lambda: begun(run, 4) and begun(again, 2))
    nodes = slurm.run("squeue", "-h", "-o", "%N", "-j", job_of(slurm, again)).stdout.strip()
    last = slurm.run("scontrol", "show", "hostnames", nodes).stdout.split()[-1]
    slurm.end(last)
    assert eventually(lambda: ended(run) and ended(again), 120)
    slurm.start_node(last)
    slurm.wait_idle()
    assert str(run.state) == "failed"
    assert run.status.error.startswith("a node failed, and Slurm ended the job")
    assert str(again.state) == "succeeded", again.status
    lines = str(again.logs()).splitlines()
    mark = lines.index("[service] attempt 2 of 2, after a node failed, and Slurm ended the job")
    assert any(f"begun on {last} with" in line for line in lines[:mark])
    after = sorted(line for line in lines[mark:] if "begun" in line)
    assert [line.rpartition(" with ")[2] for line in after] == ["of rank 0", "of rank 1"]
    assert not any(f" on {last} " in line for line in after)
    assert again.results["saved"] == "of rank 0"
    goes_on_by_itself(again, monkeypatch)


def goes_on_by_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is resumed as a job of its own, with what it had saved and the values of `--env`."""
    with pytest.raises(DistrainError, match=r"the values of --env are gone \(WORD\): set them"):
        run.resume()
    assert run.id in [other.id for other in d.runs()][:1]
    monkeypatch.setenv("WORD", SECRET)
    assert run.resumable
    resumed = run.resume().wait(120)
    assert resumed.id != run.id and resumed.links["folder"] != run.links["folder"]
    lines = sorted(str(resumed.logs()).splitlines())
    assert [line.rpartition(" with ")[2] for line in lines] == ["of rank 0", "of rank 1"]
    assert resumed.results["saved"] == "of rank 0"


def test_what_the_cluster_offers(slurm: Cluster) -> None:
    """Tab and the form know its partitions, features and GPUs, and which partition is enough."""
    slurm.wait_idle()
    sinfo._printed.cache_clear()
    layout = Layout("slurm", workers=Pool(3))
    partitions = option_choices(layout, "partition")
    assert [(choice.value, choice.fits) for choice in partitions] == [
        ("main", True), ("short", False), ("closed", False), ("urgent", True),
    ]  # fmt: skip
    assert partitions[0].label == "main · 4 of 4 nodes idle, up to 1-00:00:00"
    assert [choice.value for choice in option_choices(layout, "constraint")] == ["fast"]
    gpus = [choice.value for choice in choices(layout, "workers.machine")]
    assert gpus == ["gpu:a100:1", "gpu:a100:2"]
    line = "%%distrain --on slurm --workers 2*gpu"
    context = CompletionContext(
        token="2*gpu", full_text=line, cursor_position=len(line), cursor_line=0, limit=None
    )
    texts = [completion.text for completion in match(context)["completions"]]
    assert "2*gpu:a100:2" in texts or "gpu:a100:2" in texts, texts
