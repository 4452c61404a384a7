"""`--as-rank` runs ranks of a large world alone, and says at which rank and line one fails."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.dry_rank_cells import FAULTS, HEALTHY, PER_REPLICA, REPLICAS, Fault
from distrain_nb import api
from distrain_nb.errors import OptionError, RunFailed
from distrain_nb.options import JobOptions
from distrain_nb.run import Run
from distrain_nb.worker.facts.reader import FactReader
from distrain_nb.worker.facts.record import DRY, Fact, of_kind
from distrain_nb.worker.files.folder import DRY_FOLDER, EVENTS_FOLDER
from distrain_nb.worker.rank.stacks import HANG_AFTER_VARIABLE
from tests.local.test_deviations import start

BY_NAME = {fault.name: fault for fault in FAULTS}
QUICK = "a list by rank"


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the shards of eight ranks."""
    for number in range(8):
        (tmp_path / f"part-{number}").touch()
    monkeypatch.setenv("SHARDS", str(tmp_path))
    return tmp_path


def ended(run: Run) -> Run:
    with suppress(RunFailed):
        run.wait(400)
    return run


def facts(run: Run) -> dict[int, Fact]:
    noted = FactReader(run.folder / EVENTS_FOLDER).read()
    return {rank: of_kind(of_rank, DRY)[0] for rank, of_rank in noted.items()}


def check(fault: Fault) -> None:
    options = {"ranks_per_replica": PER_REPLICA, "workers": REPLICAS - 1, **fault.options}
    run = ended(start(fault.program, as_rank="all", **options))
    assert run.state == "failed"
    report = run.status.error or ""
    assert report.startswith(f"rank {fault.rank} failed first:"), report
    assert f"Cell In[7], line {fault.where}, in <module>" in report
    assert not (run.folder / DRY_FOLDER).exists()


def test_a_rank_of_1024_says_what_it_has_reads_and_exchanges(home: Path, shards: Path) -> None:
    run = ended(start(HEALTHY, as_rank="777/1024", ranks_per_replica=8))
    assert run.state == "succeeded" and run.findings == () and not run.status.note
    assert [process.label for process in run.status.processes] == ["rank 0", "rank 777"]
    assert not (run.folder / DRY_FOLDER).exists()
    noted = facts(run)
    assert set(noted) == {0, 777}
    fact = noted[777]
    assert (fact["world"], fact["replica"], fact["local"], fact["steps"]) == (1024, 97, 1, 2)
    assert (fact["data"]["size"], fact["data"]["drawn"]) == (8192, 8)
    bytes_of_model = 4 * (8 * 32 + 32 + 32 + 1)
    assert fact["memory"]["parameters"] == bytes_of_model
    (exchange,) = [e for e in fact["exchanges"] if e["kind"] == "all_reduce"]
    assert (exchange["bytes"], exchange["ranks"], exchange["machines"]) == (
        bytes_of_model, 1024, 128,
    )  # fmt: skip
    said = run.logs().splitlines()[-1]
    assert said.endswith("distrain: ranks 0 and 777 of 1,024 came through 2 steps, each alone")


def test_others_are_taken_to_have_what_this_rank_has(home: Path) -> None:
    text = (
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('nccl')\n"
        "rank, world = dist.get_rank(), dist.get_world_size()\n"
        "total = torch.ones(2) * rank\n"
        "dist.all_reduce(total)\n"
        "assert total.tolist() == [rank * world] * 2, total\n"
        "largest = torch.tensor([rank])\n"
        "dist.all_reduce(largest, dist.ReduceOp.MAX)\n"
        "assert largest.item() == rank\n"
        "settings = [{'rate': 0.1}] if rank == 0 else [None]\n"
        "dist.broadcast_object_list(settings, 0)\n"
        "assert settings == [{'rate': 0.1}]\n"
        "shares = [None] * world\n"
        "dist.all_gather_object(shares, rank)\n"
        "assert shares == [rank] * world\n"
        "dist.barrier()\n"
        "if rank:\n"
        "    dist.broadcast_object_list(settings, 1)  # which nobody has\n"
    )
    run = ended(start(text, as_rank="5/8"))
    report = run.status.error or ""
    assert report.startswith("rank 5 failed first: distrain_nb"), report
    assert "only other ranks have the objects that rank 1 broadcasts" in report
    assert "Cell In[7], line 18" in report


def test_the_first_rank_that_fails_is_named_with_its_line(home: Path, shards: Path) -> None:
    check(BY_NAME[QUICK])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - {QUICK}))
def test_a_fault_of_some_ranks_is_found(name: str, home: Path, shards: Path) -> None:
    check(BY_NAME[name])


def test_other_frameworks_and_options_are_refused(home: Path) -> None:
    for text, words in (
        ("import jax", "JAX has none. In one process"),
        ("import tensorflow", "TensorFlow has none"),
        ("import horovod.torch", "Horovod has none"),
        ("print(1)", "doesn't import torch"),
    ):
        with pytest.raises(OptionError, match=words):
            start(text, as_rank="all")
    for given in ({"session": "lab"}, {"prove": "2"}):
        with pytest.raises(OptionError, match="runs ranks alone"):
            _ = JobOptions(as_rank="1", **given).finding_variables  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="--steps 3 is for ranks that run alone"):
        _ = JobOptions(steps="3").finding_variables


def test_a_layout_of_a_cloud_runs_here(home: Path) -> None:
    plan = api.plan(
        "import torch", on="vertex", primary="n1-standard-32+4*T4", as_rank="3", name="night"
    )
    assert plan.ranks_per_replica == 4 and "rank 3" in str(plan)
    variables = plan.job.program.variables  # type: ignore[attr-defined]
    assert variables[HANG_AFTER_VARIABLE] == "0"  # they wait for their turn, in silence
