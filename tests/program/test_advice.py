"""Advice about a training program: what is missing is found, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from distrain_nb.findings import Severity
from distrain_nb.program.advice import findings, findings_in
from distrain_nb.worker.rank.program import Segment
from tests.program import advice_right
from tests.program.advice_samples import COMPLETE, DDP, HOROVOD_TF1, HOROVOD_TORCH

CHANGES = [
    pytest.param(source, *change, id=f"{name}-{change[2]}-{number}")
    for name, (source, changes) in COMPLETE.items()
    for number, change in enumerate(changes)
]
RIGHT = {name: text for name, text in vars(advice_right).items() if name.isupper()}


def codes(source: str) -> list[str]:
    return [f.code.removeprefix("advice.") for f in findings(source, "Cell In[1]")]


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_program_gets_no_advice(name: str) -> None:
    assert codes(COMPLETE[name][0]) == []


@pytest.mark.parametrize(("source", "there", "instead", "missing"), CHANGES)
def test_what_is_missing_is_found(source: str, there: str, instead: str, missing: str) -> None:
    changed = source.replace(there, instead)
    assert changed != source
    assert set(codes(changed)) == {missing} - {""}


@pytest.mark.parametrize("name", RIGHT)
def test_other_ways_that_are_right_get_no_advice(name: str) -> None:
    assert [str(f) for f in findings(RIGHT[name], "Cell In[1]")] == []


def test_of_tensorflow_1_the_hook_is_named() -> None:
    changed = HOROVOD_TF1.replace("[hvd.BroadcastGlobalVariablesHook(0)]", "[]")
    (found,) = findings(changed, "Cell In[1]")
    assert "hvd.BroadcastGlobalVariablesHook(0) among the hooks" in found.message
    assert "broadcast_variables" not in found.message


def test_a_finding_names_the_line_and_what_to_write() -> None:
    (found,) = findings(HOROVOD_TORCH.replace("if hvd.rank() == 0:", "if True:"), "Cell In[7]")
    assert (found.code, found.severity) == ("advice.horovod.checkpoint", Severity.WARNING)
    assert found.where == "Cell In[7], line 17"
    assert "if hvd.rank() == 0:" in found.message


def test_lines_count_from_the_magic_on() -> None:
    cell = "%%distrain --launcher mpi\n" + HOROVOD_TORCH.replace("if hvd.rank() == 0:", "if True:")
    (found,) = findings(cell, "Cell In[7]", first_line=2)
    assert found.where == "Cell In[7], line 18"


def test_lines_of_definitions_are_those_of_their_own_cells() -> None:
    definition = "def keep(model):\n    torch.save(model.state_dict(), 'model.pt')\n"
    main = definition + DDP.replace(
        'torch.save(model.module.state_dict(), "model.pt")', "keep(model)"
    )
    segments = (Segment(1, 2, "Cell In[2]", 5), Segment(3, 99, "Cell In[4]", 2, is_cell=True))
    assert findings_in(main, segments) == ()
    (found,) = findings_in(main.replace("if dist.get_rank() == 0:", "if True:"), segments)
    assert found.where == "Cell In[2], line 6"


def test_the_page_has_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "advice.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`advice\.([\w.-]+)`", page))
    assert listed == {change[2] for _, changes in COMPLETE.values() for change in changes} - {""}


def test_nothing_is_ever_an_error() -> None:
    bare = "import horovod.torch as hvd, torch\ntorch.optim.SGD([], 0.1)\ntorch.save({}, 'x')"
    found = findings(bare, "Cell In[1]")
    assert {f.code.rpartition(".")[2] for f in found} == {
        *("init", "learning-rate", "optimizer", "broadcast", "checkpoint")
    }
    assert Severity.ERROR not in {f.severity for f in found}


@pytest.mark.parametrize(
    "cell",
    ["", "x = (", "print('no training here')", "import torch\ntorch.save({}, 'x')", "%matplotlib"],
)
def test_other_cells_are_left_alone(cell: str) -> None:
    assert findings(cell, "Cell In[1]") == ()


def test_a_loss_that_comes_from_a_ranked_model_is_no_guard() -> None:
    unguarded = DDP.replace("if dist.get_rank() == 0:", "if loss.item() < 1:")
    ranked = unguarded.replace("local_rank", "rank")
    assert codes(ranked.replace('"LOCAL_RANK"', '"RANK"')) == ["ddp.checkpoint"]


def test_one_rank_alone_in_a_validation_loader_is_not_the_training_loader() -> None:
    more = DDP + "validation = DataLoader(valid_set, batch_size=32)\n"
    assert codes(more) == []
    assert codes(more.replace("valid_set, ", "valid_set, shuffle=True, ")) == ["ddp.sampler"]


def test_a_loader_that_one_rank_makes_needs_no_sampler() -> None:
    """Rank 0 evaluates alone, on all of the data."""
    alone = "    test = DataLoader(test_set, batch_size=32, shuffle=True)\n"
    for test in ("if dist.get_rank() == 0:", 'if int(os.environ["RANK"]) == 0:'):
        assert codes(f"{DDP}import os\n{test}\n{alone}") == []
    assert codes(f"{DDP}if True:\n{alone}") == ["ddp.sampler"]


def test_an_average_of_metrics_is_none_of_gradients() -> None:
    wrapped = HOROVOD_TORCH.replace("hvd.DistributedOptimizer", "other")
    assert codes(wrapped + "loss = hvd.allreduce(loss)\n") == ["horovod.optimizer"]


def test_a_single_number_broadcast_is_not_the_weights() -> None:
    lines = [line for line in HOROVOD_TORCH.splitlines() if "broadcast" not in line]
    assert codes("\n".join([*lines, "epoch = hvd.broadcast(epoch, 0)"])) == ["horovod.broadcast"]
