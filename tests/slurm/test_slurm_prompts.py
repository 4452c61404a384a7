"""Ranks of runs on a real Slurm cluster ask whoever follows their run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import Kernel
from tests.local.test_prompts import at_prompt, talk
from tests.remote import asking
from tests.slurm.cluster import Cluster

pytestmark = pytest.mark.slow


def test_a_rank_is_answered(slurm: Cluster, work: Path) -> None:
    asking.a_rank_is_answered(on="slurm", workers=2)


def test_a_failed_rank_is_looked_at(slurm: Cluster, work: Path) -> None:
    asking.a_failed_rank_is_looked_at(on="slurm", workers=2)


def test_a_failed_rank_waits_for_somebody(slurm: Cluster, work: Path) -> None:
    asking.a_failed_rank_waits_for_somebody(on="slurm", workers=2)


def test_quitting_ends_the_run(slurm: Cluster, work: Path) -> None:
    asking.quitting_ends_the_run(on="slurm", workers=2)


def test_a_rank_is_stopped_where_it_is(slurm: Cluster, work: Path) -> None:
    asking.a_rank_is_stopped_where_it_is(on="slurm", workers=2)


def test_a_cell_that_waits_asks_below_it(slurm: Cluster, work: Path, nb: Kernel) -> None:
    cell = (
        "n = 41\nimport os\nif os.environ['RANK'] == '1':\n    breakpoint()\n    print('n is', n)"
    )
    commands = at_prompt(1, "!n = 50", "ranks p n", "c")
    outcome = talk(nb, cell, commands, "--on slurm --workers 2 --wait")
    assert not outcome.error
    assert "here: 50" in outcome.text
    assert "n is 50" in nb.run("%distrain logs").text
    other = nb.run("%%distrain --on slurm --workers 2\nimport time\ntime.sleep(600)")
    assert not other.error
    assert "start it with --wait, or with --debug" in nb.run("%distrain debug 2").error
    nb.run("%distrain cancel 2")


def test_clouds_have_no_prompt(nb: Kernel) -> None:
    refused = nb.run("%%distrain --on vertex --debug --dry-run\nprint(1)")
    assert "--debug has no meaning on Vertex AI: ranks there can't ask" in refused.error
