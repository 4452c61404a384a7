"""Jobs by a real slurmrestd, on a machine whose commands of Slurm find no cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import distrain_nb as d
from distrain_nb.backends import plugins
from distrain_nb.backends.plugins import option_choices
from distrain_nb.config import Config
from distrain_nb.errors import CheckFailed, DistrainError, RunFailed
from distrain_nb.layout import Layout, Pool
from distrain_nb.places.slurm import sinfo
from distrain_nb.places.slurm.backend import SlurmBackend
from distrain_nb.places.slurm.commands import Commands, ControllerUnreachable, Refused
from distrain_nb.places.slurm.controller import controller
from distrain_nb.places.slurm.rest import Rest
from distrain_nb.ui.form import Form
from tests.conftest import eventually, holding
from tests.slurm.cluster import Cluster, free_ports
from tests.slurm.test_jobs import LONG, REDUCED, SECRET, begun, ended, job_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def address(one_cluster: Cluster) -> str:
    (port,) = free_ports(1)
    one_cluster.start_rest(port)
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def rest(
    one_cluster: Cluster, address: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setenv("SLURM_JWT", one_cluster.token())
    Config.load().changed("slurm_url", address, plugins.settings()).save()
    one_cluster.resume_all()
    yield one_cluster
    one_cluster.cancel_all()


def test_two_nodes_of_two_ranks(rest: Cluster, work: Path, tmp_path: Path) -> None:
    (work / "beside.txt").write_text("data beside the notebook")
    code = REDUCED + "print('token', os.environ.get('SLURM_JWT'))\n"
    options = {"on": "slurm", "workers": 2, "ranks_per_replica": 2, "name": "sum"}
    run = d.submit(code, **options, timeout="10m", result="total", env=f"WORD={SECRET}")
    run.wait()
    lines = str(run.logs()).splitlines()
    for rank, node in enumerate((0, 0, 1, 1)):
        assert f"[rank {rank}] sum 6.0 on node {node} {len(SECRET)}" in lines
        assert f"[rank {rank}] token None" in lines
    assert dict(run.results) == {"total": 6.0}
    token = os.environ["SLURM_JWT"]
    assert holding(tmp_path, token) == holding(rest.folder, token) == []


def test_a_refusal_and_a_cancelled_run(rest: Cluster) -> None:
    with pytest.raises(RunFailed) as refused:
        d.submit("1", on="slurm", constraint="fast&nope", name="refused").wait()
    words = "--constraint (fast&nope): slurmrestd refuses the job: Invalid feature specification"
    assert words in str(refused.value)
    run = d.submit(
        LONG, on="slurm", workers="1*gpu:a100:2", memory="200M", sbatch="--nice=7", name="here",
        signal_before="60s", timeout="5m", exclusive=True, ranks_per_replica=1,
    )  # fmt: skip
    assert eventually(lambda: begun(run))
    shown = rest.run("scontrol", "show", "job", job_of(rest, run)).stdout
    for words in ("Nice=7", "gpu:a100:2", "TimeLimit=00:05:00", "MinMemoryNode=200M", "=NO "):
        assert words in shown
    waiting = d.submit("1", on="slurm", workers=4, exclusive=True, name="waiting")
    assert eventually(lambda: waiting.status.note.startswith("waiting for nodes"))
    later = d.submit("1", on="slurm", workers=4, exclusive=True, name="later")
    assert eventually(lambda: "; 1 job before it" in later.status.note)
    for each in (later, waiting, run):
        each.cancel()
    assert all(eventually(lambda each=each: ended(each), 90) for each in (run, waiting, later))
    assert [str(each.state) for each in (run, waiting, later)] == ["cancelled"] * 3
    assert "asked to end" in str(run.logs())
    assert run.status.error == ""


def test_the_controller_is_away(rest: Cluster) -> None:
    """A job goes on, its log too; what is submitted meanwhile arrives later."""
    running = d.submit(
        "import time\nprint('begun', flush=True)\nfor n in range(80): print(n); time.sleep(0.1)",
        on="slurm", workers=1, name="running",
    )  # fmt: skip
    assert eventually(lambda: begun(running))
    rest.end("slurmctld", signal.SIGTERM)
    try:
        later = d.submit("print('hello')", on="slurm", workers=1, name="later")
        assert eventually(lambda: "doesn't answer" in running.status.note or ended(running))
        assert eventually(lambda: ended(running)) and str(running.state) == "succeeded"
        assert not ended(later) and later.status.error == ""
    finally:
        rest.start_controller()
    assert eventually(lambda: ended(later), 120) and str(later.state) == "succeeded"


def test_what_the_cluster_offers(rest: Cluster, address: str) -> None:
    """slurmrestd says of partitions and nodes what `sinfo` and `scontrol` do."""
    rest.wait_idle()
    sinfo._printed.cache_clear()
    layout = Layout("slurm", workers=Pool(3))
    partitions = option_choices(layout, "partition")
    assert [(choice.value, choice.fits) for choice in partitions] == [
        ("main", True), ("short", False), ("closed", False), ("urgent", True),
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SLURM_CONF", rest.environment["SLURM_CONF"])
        assert sinfo.read(*Commands().printed()) == sinfo.partitions()
    text = str(d.plan("1", on="slurm", workers="2*gpu:a100:2", timeout="90s"))
    assert f"# POST {address}/slurm/v0.0.38/job/submit, with this script and" in text
    assert '"nodes": [2, 2]' in text and '"gres": "gpu:a100:2"' in text
    assert '"time_limit": 2' in text and "#SBATCH --time=00:01:30" in text
    form = Form("%%distrain --on slurm --workers 3 --partition short")
    assert [finding.code for finding in form.findings] == ["slurm.nodes"]
    (login, version, *others) = SlurmBackend().access({})
    assert login.result.startswith("root, by SLURM_JWT, valid until ")
    assert version.result == "v0.0.38" and len(others) == 4


def test_tokens(
    rest: Cluster, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may be renewed, so that a job waits for it; the variable of a process can't be."""
    file = tmp_path / "token"
    server = Rest(address, str(file))
    with pytest.raises(Refused, match="No such file"):
        server.jobs()
    file.write_text(f"SLURM_JWT={rest.token()}\n")
    monkeypatch.setenv("SLURM_JWT", "none")
    assert all(job.name for job in server.jobs())
    file.write_text(rest.token(1))
    assert eventually(lambda: _away(server))
    with pytest.raises(DistrainError, match=r"Unspecified error|refuses the token"):
        Rest(address).jobs()
    monkeypatch.setenv("SLURM_JWT", "")
    words = "the variable SLURM_JWT has no token for http"
    with pytest.raises(Refused, match=words):
        Rest(address).jobs()
    with pytest.raises(CheckFailed, match=words):
        d.submit("1", on="slurm")
    monkeypatch.setenv("SLURM_JWT", rest.token())
    with pytest.raises(Refused, match=r"8\.8\.8\.8 has a public address"):
        Rest("http://8.8.8.8:6820").jobs()
    (port,) = free_ports(1)
    with pytest.raises(ControllerUnreachable, match=r"doesn't answer: .*refused"):
        controller(f"http://127.0.0.1:{port}", "").jobs()
    controller(address, "").cancel("999999")  # as `scancel` does of a job that has ended


def _away(server: Rest) -> bool:
    try:
        server.jobs()
    except ControllerUnreachable as error:
        return "renew it in" in str(error)
    return False
