"""What Slurm's commands print, as a cluster has printed it, and what is made of it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from distrain_nb.backends.job import Job
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding
from distrain_nb.layout import Layout
from distrain_nb.places.slurm import choices, queue, sinfo, squeue, states
from distrain_nb.places.slurm.backend import SlurmBackend
from distrain_nb.places.slurm.commands import environment, error_text
from distrain_nb.places.slurm.options import SlurmOptions
from distrain_nb.places.slurm.refusal import refusal
from distrain_nb.program import Cell, Notebook, capture
from distrain_nb.ui.form import Form

SINFO = """\
main|main*|up|1-00:00:00|1-infinite|2|idle|4|8000|gpu:a100:2|fast
main|main*|up|1-00:00:00|1-infinite|2|mixed|4|8000|(null)|(null)
short|short|up|10:00|1-2|2|idle|4|8000|gpu:a100:2|fast
big|big|up|infinite|1-infinite|64|down*|96|515000|gpu:h100:8(S:0-1),shard:8|nvlink,ib
closed|closed|down|infinite|1-infinite|2|idle|4|8000|(null)|(null)
"""
SCONTROL = (
    "PartitionName=big AllowGroups=ALL AllowAccounts=llm,vision AllowQos=ALL AllocNodes=ALL "
    "Default=NO QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP\n"
    "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default=YES State=UP\n"
)


def planned(line: str, **options: object) -> object:
    program = capture(Cell("Cell In[1]", "import torch"), 1, Notebook({}, (), Path.cwd()))
    machine = {"sinfo": SINFO, "partitions": SCONTROL, "sbatch": "/usr/bin/sbatch", "jobs": "/jobs"}
    job = Job(
        program, Layout.from_line(f"--on slurm {line}"), Path("/home/me/my work"),
        SlurmOptions(**options), machine=machine, nonce="abc", environ={},
    )  # fmt: skip
    return SlurmBackend().plan(job)


def found(line: str, **options: object) -> list[Finding]:
    return list(planned(line, **options).findings)  # type: ignore[attr-defined]


def test_partitions_and_their_nodes() -> None:
    known = sinfo.read(SINFO, SCONTROL)
    assert list(known) == ["main", "short", "big", "closed"]
    main, big = known["main"], known["big"]
    assert (main.default, main.up, main.longest, main.size, main.idle) == (True, True, 86400, 4, 2)
    assert str(main) == "2 of 4 nodes idle, up to 1-00:00:00"
    assert (known["short"].most, known["short"].limit, known["closed"].up) == (2, 2, False)
    assert big.nodes[0].gres == ("gpu:h100:8(S:0-1)", "shard:8")
    assert big.accounts == ("llm", "vision") and main.accounts == ()
    assert big.nodes[0].has("gpu:8") and big.nodes[0].has("gpu:h100:2")
    assert not big.nodes[0].has("gpu:a100:1") and not big.nodes[0].has("gpu:9")
    assert sinfo.read("slurm_load_partitions: Unable to contact\n") == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10:00", 600), ("1-00:00:00", 86400), ("2:00:00", 7200), ("30", 1800), ("1-12", 129600),
        ("infinite", None), ("n/a", None),
    ],
)  # fmt: skip
def test_times(text: str, value: int | None) -> None:
    assert sinfo.seconds(text) == value
    if value:
        assert sinfo.seconds(sinfo.clock(value)) == value


def test_jobs_of_a_queue() -> None:
    rows = squeue.read(
        "12|PENDING|Resources|2026-11-26T14:10:00|a|b\n13|RUNNING|None|N/A|c\n"
        "14|PENDING|Nodes required for job are DOWN, DRAINED or reserved|N/A|d\nnonsense\n"
    )
    assert [(row.job, row.state, row.name) for row in rows] == [
        ("12", "PENDING", "a|b"), ("13", "RUNNING", "c"), ("14", "PENDING", "d"),
    ]  # fmt: skip
    assert rows[0].start == squeue.epoch_seconds("2026-11-26T14:10:00") > 0 == rows[1].start
    known = queue.JobList(1.0, rows)
    assert known.row("13", "c") == rows[1] and known.row("13", "of another life") is None
    assert (known.named("a|b"), known.named("x")) == ("12", "")
    waiting = "7|main\n8|short\n12|main\n9_[1-4]|main\n14|main\n"
    assert queue.jobs_before(waiting, {"12", "14", "15"}) == {"12": 1, "14": 3}


def test_reasons_and_causes() -> None:
    assert (
        states.reason_text("Resources") == "waiting for nodes" and states.reason_text("None") == ""
    )
    assert states.reason_text("QOSMaxJobsPerUserLimit") == (
        "a limit of the QOS is reached (QOSMaxJobsPerUserLimit)"
    )
    assert states.reason_text("ReqNodeNotAvail,_UnavailableNodes:node[1-4]").startswith(
        "nodes that it"
    )
    assert states.reason_text("Something_new") == "Something new"
    line = "slurmstepd-node1: error: *** STEP 3.0 ON node1 CANCELLED AT 2026-11-26T15:04:50 %s***"
    assert states.cause_in(line % "DUE TO TIME LIMIT ") == "TIMEOUT"
    assert states.cause_in(line % "DUE TO PREEMPTION ") == "PREEMPTED"
    assert states.cause_in(line % "") == "CANCELLED" and states.cause_in("a rank's line") == ""


def test_a_step_that_srun_ends_as_a_task_has_failed_was_not_cancelled() -> None:
    failed = (
        "srun: error: node2: task 1: Exited with exit code 1\n"
        "srun: launch/slurm: _step_signal: Terminating StepId=3.0\n"
    )
    ended = "slurmstepd-node1: error: *** STEP 3.0 ON node1 CANCELLED AT 2026-11-26T15:04:50 ***\n"
    assert states.cause_in(failed + ended) == ""
    assert states.cause_in(ended + failed) == "CANCELLED"
    by_scancel = ended.replace("STEP 3.0", "JOB 3")
    assert states.cause_in(failed + ended + by_scancel) == "CANCELLED"


def test_the_form_offers_what_nodes_of_any_partition_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "partitions", lambda: sinfo.read(SINFO, SCONTROL))
    layout = Layout.from_line("--on slurm --workers 2")
    offered = {str(choice.value): choice.label for choice in choices.features(layout)}
    assert offered == {name: f"{name} · {n} nodes" for name, n in
                       (("fast", 2), ("nvlink", 64), ("ib", 64))}  # fmt: skip
    gres = [choice.value for choice in choices.gres(layout, "workers.machine")]
    assert gres[:2] == ["gpu:a100:1", "gpu:a100:2"] and "gpu:h100:8" in gres


def test_refusals_name_the_option() -> None:
    words = error_text(
        "sbatch: error: invalid partition specified: nope\n"
        "sbatch: error: Batch job submission failed: Invalid partition name specified\n"
    )
    assert words == (
        "invalid partition specified: nope; "
        "Batch job submission failed: Invalid partition name specified"
    )
    assert refusal(words, {"partition": "nope"}).startswith("--partition (nope): sbatch refuses")
    gres = "Batch job submission failed: Invalid generic resource (gres) specification"
    assert refusal(gres, {"gres": "tpu:1"}).startswith("--workers (--gres=tpu:1): sbatch")
    assert refusal("no idea", {"gres": "tpu:1"}) == "sbatch refuses the job: no idea"


def test_what_a_command_gets_of_the_environment() -> None:
    kept = {"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "SBATCH_ACCOUNT": "llm"}
    dropped = {"SLURM_JOB_ID": "7", "SQUEUE_FORMAT": "%i", "AWS_SECRET_ACCESS_KEY": "x" * 40}
    assert environment({**kept, **dropped}) == kept


def test_the_script(tmp_path: Path) -> None:
    plan = planned(
        "--workers 2*gpu:a100:2 --timeout 90m",
        partition="main", account="llm", memory="4G", exclusive=True, sbatch=("--nice=10",),
    )  # fmt: skip
    text = str(plan)
    for line in (
        "# 2 nodes with 2 ranks each",
        "# partition main: 2 of 4 nodes idle, up to 1-00:00:00",
        "#SBATCH --nodes=2",
        "#SBATCH --gres=gpu:a100:2",
        "#SBATCH --time=01:30:00",
        "#SBATCH --mem=4G",
        "#SBATCH --exclusive",
        '#SBATCH --chdir="/home/me/my work"',
        "#SBATCH --output=/jobs/abc/said",
        "#SBATCH --nice=10",
    ):
        assert line in text.splitlines()
    assert "--cpus-per-task" not in text
    assert "#SBATCH --cpus-per-task=3" in str(planned("--workers 2 -n 3"))
    assert plan.findings == ()  # type: ignore[attr-defined]


CONTRADICTING = {
    "--array=1-4": "a run is one job",
    "-a 1-4": "a run is one job",
    "--nodes=4": "--workers says",
    "-N4": "--workers says",
    "--node=4": "may be --nodefile or --nodelist",
    "--nice=1 --ntasks-per-node=2": "-n says how many ranks",
    "--tasks-per-node=2": "-n says how many ranks",
    "--test-only": "--dry-run",
    "--wrap=ls": "the cell is what runs",
    "--job-name=x": "--name",
    "-o x": "the run's log",
    "--chdir=/": "notebook's folder",
    "--requeue": "--retries",
    "--signal=B:USR1@9": "--signal-before",
    "--wait": "--wait",
    "--cpus-per-task=9": "the job has --cpus-per-task=1: --cpus",
    "--time=9": "the job has --time=01:00:00: --timeout",
    "--partition=short": "the job has --partition=main: --partition",
    "--nice=1\ntouch PLANTED": "one line",
    "--nice=1\rtouch": "one line",
    "touch": "no option",
    "--comment=two words": "no option",
    "--nicest=1": "no option --nicest",
    "hetjob": "no option",
    "": "expected an option",
}


@pytest.mark.parametrize(("text", "why"), CONTRADICTING.items(), ids=CONTRADICTING)
def test_an_option_of_sbatch_that_contradicts_the_job(text: str, why: str) -> None:
    with pytest.raises(OptionError, match=r"^invalid --sbatch ") as refused:
        planned("--workers 2 --timeout 1h -n 1", partition="main", sbatch=(text,))
    assert why in str(refused.value)


def test_options_of_sbatch_are_written_for_it() -> None:
    texts = ("--comment='two # words' --nice", "-w node[1-2]", "--nodes=2", "--export=A=$(x)")
    lines = str(planned("--workers 2", sbatch=texts)).splitlines()
    for line in (
        '#SBATCH --comment="two # words"', "#SBATCH --nice", "#SBATCH --nodelist=node[1-2]",
        "#SBATCH --export=A=$(x)",
    ):  # fmt: skip
        assert line in lines
    assert lines.count("#SBATCH --nodes=2") == 1
    url = "http://localhost:6820"
    with pytest.raises(OptionError, match="one line"):
        planned("--workers 1", url=url, sbatch=("--comment=x\ntouch PLANTED",))


@pytest.mark.parametrize("folder", ["/jobs/a:b", "/jobs/a\\b", "/jobs/a\nb"])
def test_a_folder_of_jobs_that_cannot_be(folder: str) -> None:
    with pytest.raises(OptionError, match="invalid folder of jobs"):
        planned("--workers 1", jobs_folder=folder)


BEYOND = [
    ("--workers 2", {"partition": "mian"}, "slurm.partition", "main", "--partition main"),
    ("--workers 5", {}, "slurm.nodes", "5 nodes are more", "--workers 4"),
    ("--workers 3*gpu:2", {}, "slurm.nodes", "2 such nodes", "--workers 2*gpu:2"),
    ("--workers 3", {"partition": "short"}, "slurm.nodes", "2 nodes for a job", "--workers 2"),
    ("--workers 2*gpu:4", {}, "slurm.gres", "nodes have gpu:a100:2", "--workers 2*gpu:a100:2"),
    ("--workers 1 --timeout 1h", {"partition": "short"}, "slurm.time", "10m", "--timeout 10m"),
    ("--workers 1", {"memory": "64G"}, "slurm.memory", "the most is 8000M", "--memory 8000M"),
    ("--workers 1", {"cpus": "8"}, "slurm.cpus", "the most is 4", "--cpus 4"),
    ("--workers 1", {"constraint": "slow"}, "slurm.constraint", "fast", "--constraint fast"),
    ("--workers 1", {"partition": "closed"}, "slurm.partition-down", "down", "--partition main"),
    ("--workers 1", {"partition": "big", "account": "x"}, "slurm.account", "llm", "--account llm"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "options", "code", "words", "repair"), BEYOND)
def test_limits_of_the_cluster(
    line: str, options: dict[str, object], code: str, words: str, repair: str
) -> None:
    (finding,) = found(line, **options)
    assert finding.code == code and words in finding.message
    own = " ".join(f"--{name} {value}" for name, value in options.items())
    cell = f"%%distrain --on slurm {line} {own}\n1"
    assert repair in finding.fixes[0].apply(cell)
    head = finding.fixes[0].apply(cell).partition("\n")[0]
    assert head.count("--partition") <= 1 and head.count("--workers") == 1


def test_the_form_shows_the_limits_and_repairs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinfo, "cluster_report", lambda *_: (SINFO, SCONTROL))
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    built = Form("%%distrain --on slurm --workers 3*gpu:2 --partition short --timeout 1h")
    assert [finding.where for finding in built.findings] == ["timeout", "workers"]
    built.repair("slurm.nodes", "workers")
    built.repair("slurm.time", "timeout")
    line = "%%distrain --on slurm --workers 2*gpu:2 --timeout 10m --partition"
    assert (built.line, built.findings) == (f"{line} short", ())
    built.set("own.partition", "mian")
    (shown,) = built.widget.view["findings"]
    assert shown["places"] == [["own.partition", "Partition"]]
    built.repair("slurm.partition", "own.partition")
    assert built.line == f"{line} main"
    built.undo()
    assert built.line == f"{line} mian"


def test_one_kind_of_machine() -> None:
    (finding,) = found("--primary gpu:1 --workers 1*gpu:2")
    assert finding.code == "slurm.one-machine"
    assert str(Layout.from_line("--workers 4*gpu:a100:8").workers) == "4*gpu:a100:8"


def test_data_are_read_by_their_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path needn't be there on this machine: nodes have disks of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    given = ("shards", "file:///data/shards", "~/shards", "/scratch/shards", "s3://bucket/shards")
    assert [SlurmBackend().data("corpus", uri) for uri in given] == [
        f"{tmp_path}/shards", "/data/shards", "/home/me/shards", "/scratch/shards",
        "s3://bucket/shards",
    ]  # fmt: skip
    with pytest.raises(OptionError, match="--data corpus=~nobody-here/x: this machine has no such"):
        SlurmBackend().data("corpus", "~nobody-here/x")


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ("COMPLETED\n", "COMPLETED"), ("CANCELLED by 1000\n", "CANCELLED"),
        ("PREEMPTED\n", "PREEMPTED"), ("PENDING\n", ""), ("RUNNING\n", ""), ("", ""),
    ],
)  # fmt: skip
def test_what_the_accounting_says_of_an_end(printed: str, state: str) -> None:
    """As `sacct` printed it where slurmdbd kept accounts; of a job that it takes for a live one,
    and the controller doesn't know any more, the end hasn't come there yet."""
    assert states.accounting_state(printed) == state


def srun_of(line: str, **options: object) -> list[str]:
    """What comes after `--cpu-bind=none`, and before the file that a replica starts with."""
    lines = str(planned(line, **options)).splitlines()
    (words,) = [shlex.split(text) for text in lines if text.startswith("srun")]
    assert words[-2:] == ["/jobs/abc/start.py", "SLURM_PROCID"]
    return words[words.index("--cpu-bind=none") + 1 : -2]


def test_an_image_is_run_by_apptainer_or_pyxis() -> None:
    work, line = "/home/me/my work", "--workers 2*gpu:8 --image nvcr.io/nvidia/pytorch:24.01-py3"
    assert srun_of(line, mount=("/data",)) == [
        "apptainer", "exec", "--nv", "--bind", f"/jobs/abc,{work},/data", "--pwd", work,
        "docker://nvcr.io/nvidia/pytorch:24.01-py3", "python3",
    ]  # fmt: skip
    assert srun_of(line, container="pyxis", python="/opt/python") == [
        "--container-image=nvcr.io#nvidia/pytorch:24.01-py3",
        f"--container-mounts=/jobs/abc:/jobs/abc,{work}:{work}",
        f"--container-workdir={work}",
        "/opt/python",
    ]
    assert "--rocm" in srun_of("--workers 2*gpu:mi250:8 --image rocm/pytorch")
    assert srun_of("--workers 1 --image /images/torch.sif")[-2:] == ["/images/torch.sif", "python3"]
    assert "--container-image=a/b" in srun_of("--workers 1 --image a/b", container="pyxis")
    assert srun_of("--workers 1") == ["python3"]
    with pytest.raises(OptionError, match="invalid --container 'docker': expected apptainer or py"):
        planned("--workers 1", container="docker")
    with pytest.raises(OptionError, match="invalid --mount 'data': expected a whole path"):
        planned("--workers 1 --image ubuntu", mount=("data",))
