"""What the worker's own arguments do: a service gives a study's trials their values by them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.worker.rank import program as programs
from distrain_nb.worker.rank.arguments import ARGUMENTS_VARIABLE

TEXT = """\
import multiprocessing as mp, sys
def report(who):
    print(who, sys.argv[1:], lr, layers, optimizer)
if __name__ == "__main__":
    report("rank")
    child = mp.get_context("spawn").Process(target=report, args=("child",))
    child.start()
    child.join()
"""


def write(folder: Path, *, tuned: dict[str, str]) -> None:
    """The cell, for which the notebook has other values, as a program."""
    from dataclasses import replace

    options = {"param": ["lr=1.0", "layers=1", "optimizer=adam"], "args": ["--epochs", "2"]}
    program = api.prepare(TEXT, **options).job.program
    replace(program, tuned=tuned).write(folder)


def worker(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "distrain_nb.worker", *arguments]
    environment = {**os.environ, "DISTRAIN_PROGRAM": str(folder)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.brief
@pytest.mark.slow
def test_they_reach_the_program_its_children_and_the_names_that_it_reads(
    home: Path, tmp_path: Path
) -> None:
    write(tmp_path / "tuned", tuned={"lr": "float", "layers": "int", "optimizer": "str"})
    given = ("--lr=0.01", "--layers=3.0", "--optimizer=sgd=nesterov")
    ran = worker(tmp_path / "tuned", *given)
    words = ["--epochs", "2", *given]
    said = f"{words} 0.01 3 sgd=nesterov"
    assert ran.stdout == f"[rank 0] rank {said}\n[rank 0] child {said}\n", ran.stderr


def test_names_that_no_trial_gives_keep_the_notebooks_value(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "tuned", tuned={"lr": "float"})
    monkeypatch.setenv(ARGUMENTS_VARIABLE, '["--layers=7", "--lr=1e-3", "--verbose"]')
    assert programs.parameters(tmp_path / "tuned") == {"lr": "0.001"}
    monkeypatch.setenv(ARGUMENTS_VARIABLE, '["--lr=fast"]')
    with pytest.raises(ValueError, match="--lr=fast: expected a number"):
        programs.parameters(tmp_path / "tuned")
    monkeypatch.delenv(ARGUMENTS_VARIABLE)
    assert programs.parameters(tmp_path / "tuned") == {}


def test_a_program_without_tuned_names_has_its_arguments_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "plain", tuned={})
    monkeypatch.setenv(ARGUMENTS_VARIABLE, '["--lr=1e-3"]')
    assert programs.arguments(tmp_path / "plain") == ["--epochs", "2", "--lr=1e-3"]
    assert programs.parameters(tmp_path / "plain") == {}
