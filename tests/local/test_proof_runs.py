"""`--prove N` compares steps with those of one rank, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import distrain_nb as d
from benchmarks.trained_wrong_cells import PROGRAMS
from distrain_nb.errors import OptionError
from distrain_nb.options import JobOptions
from distrain_nb.run import Run
from tests.local.test_deviations import about_ranks, ended, start

PLAIN = PROGRAMS["plain"]


def proven(text: str, *changes: tuple[str, str]) -> tuple[Run, str]:
    """Run a changed program; return its run and what is said of the proof."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    run = ended(start(text, prove=3))
    assert not (run.folder / "proof").exists()
    lines = [line for line in run.logs(0).splitlines() if "distrain: " in line]
    return run, lines[-1]


def test_steps_of_a_healthy_program_are_proven(home: Path, tmp_path: Path) -> None:
    end = tmp_path / "end"
    layers = ("torch.nn.ReLU(),", "torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.BatchNorm1d(16),")
    run, said = proven(PLAIN, layers, ("\nprint(", f"\nopen({str(end)!r}, 'w')\nprint("))
    assert run.state == "succeeded" and run.findings == ()
    assert "proven: 3 steps of 2 ranks are those of one rank on the batches of all" in said
    assert "batch norm by its running statistics and dropout turned off" in said
    assert not end.exists()  # the run ends after these steps


def test_a_step_that_parts_is_named_with_its_line(home: Path) -> None:
    run, said = proven(PLAIN, ("(model(x) - y).square().mean()", "(model(x) - y).square().sum()"))
    (finding,) = about_ranks(run)
    assert finding.code == "proof.parted" and finding.where == "Cell In[7], line 24"
    assert "the gradient of 0.weight is 0.5 times as large on ranks 0 and 1" in finding.message
    assert "The loss is a sum over its batch" in said


def test_a_program_that_cannot_be_proven_says_why(home: Path) -> None:
    run, said = proven(PLAIN, ("(model(x) - y)", "(model(x + torch.randn(8, 8)) - y)"))
    assert "not proven: its steps draw random numbers, before Cell In[7], line 25." in said
    assert said.endswith("their weights are equal in 3 steps")
    assert run.state == "succeeded" and run.findings == ()


def test_other_numbers_of_steps_and_sessions_are_refused(home: Path) -> None:
    with pytest.raises(OptionError, match=r"--prove '0': expected 1 to 99 steps"):
        start("pass", prove=0)
    with pytest.raises(OptionError, match="several ranks with one"):
        start("pass", prove=2, ranks_per_replica=1)
    with pytest.raises(OptionError, match="this layout has 2 replicas: leave out"):
        d.plan("pass", on="slurm", cpus=1, workers=2, prove=2)
    with pytest.raises(OptionError, match="ranks of its own"):
        _ = JobOptions(prove="2", session="night").finding_variables
