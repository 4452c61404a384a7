"""`%distrain advise` in a notebook: the choice, and what the cell lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from IPython.core.interactiveshell import InteractiveShell

from distrain_nb import api
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.layout.rules import check
from distrain_nb.magics.lines import run_line
from distrain_nb.run.summary import summary_of
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics.writer import append
from tests.program.advice_samples import HOROVOD_TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CASE = [
    *("advise", "--model-size", "25MB", "--gpus-per-instance", "4"),
    *("--instances", "2", "--network", "10"),
]
BARE = "def keep(model):\n    torch.save(model.state_dict(), 'model.pt')\n"


@pytest.fixture
def shell(home: Path) -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def executed(shell: InteractiveShell, cell: str) -> None:
    """Put a cell into the history as executed, without running it."""
    shell.history_manager.store_inputs(shell.execution_count, cell)
    shell.execution_count += 1


def test_figures_alone_give_the_choice(shell: InteractiveShell) -> None:
    told = run_line([*CASE, "--framework", "tensorflow-1.13"], shell)
    assert told.advice.choice == "Horovod"
    assert told.script == ""
    assert "--launcher mpi -n 4" in repr(told)
    assert "--launcher mpi -n 4" in told._repr_html_()


def test_a_pool_tells_its_figures_and_others_change_them(shell: InteractiveShell) -> None:
    words = ["advise", "--workers", "2*ml.p3.8xlarge", "--framework", "tensorflow-1.13"]
    told = run_line([*words, "--model-size", "1.34GB"], shell)
    assert told.advice.choice == "Horovod on one instance"
    assert run_line([*words, "--model-size", "25MB"], shell).advice.choice == "Horovod"
    slower = run_line([*words, "--model-size", "1.34GB", "--step", "20"], shell)
    assert slower.advice.choice == "Horovod"


def test_reducers_are_told_of_beside_parameter_servers(shell: InteractiveShell) -> None:
    words = "advise --workers 8*n1-standard-16+1*T4 --framework tensorflow-2.12 --step 0.1"
    told = run_line([*words.split(), "--model-size", "1.34GB"], shell)
    assert told.advice.choice == "parameter servers"
    for shown in (repr(told), told._repr_html_()):
        assert "8 reducers shorten a step from 637 ms to 385 ms" in shown
        assert [way for way in ("587.0 ms", "670.3 ms", "335.1 ms") if way not in shown] == []


def test_the_line_that_is_written_is_one_that_runs(shell: InteractiveShell) -> None:
    words = "advise --workers 2*ml.m5.4xlarge --framework pytorch --model-size 100MB"
    line = run_line(words.split(), shell).advice.options
    assert line.endswith("--launcher mpi -n 1")
    assert errors(check(Layout.from_line(line))) == ()


def test_without_anything_it_asks(shell: InteractiveShell) -> None:
    assert "--model-size: how large" in repr(run_line(["advise"], shell))


def test_the_last_training_cell_is_looked_at_with_what_it_needs(shell: InteractiveShell) -> None:
    executed(shell, "import torch\n" + BARE)
    shell.ex("import types; torch = types.ModuleType('torch')\n" + BARE)
    cell = HOROVOD_TORCH.replace('torch.save(model.state_dict(), "model.pt")', "keep(model)")
    executed(shell, "%%distrain -n 2\n" + cell.replace("if hvd.rank() == 0:", "if True:"))
    executed(shell, "%distrain advise")
    told = run_line(["advise"], shell)
    assert [str(f.code) for f in told.findings] == ["advice.horovod.checkpoint"]
    assert told.findings[0].where == "Cell In[1], line 3"
    assert told.advice is None
    executed(shell, "%%distrain -n 2\n" + cell)
    assert repr(run_line(["advise"], shell)) == "Cell In[4]: nothing is missing"
    assert run_line(["advise", "--script", "2"], shell).findings == told.findings


def test_a_file_is_looked_at(shell: InteractiveShell, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HOROVOD_TORCH.replace("if hvd.rank() == 0:", "if True:"), encoding="utf-8")
    told = run_line(["advise", "--script", str(script)], shell)
    assert [f.where for f in told.findings] == [f"{script}, line 17"]
    assert "advice.horovod.checkpoint" in told._repr_html_()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--script", "9"], r"no cell In\[9\]"),
        (["--script", "nowhere.py"], "nowhere.py"),
        (["--instances", "0"], "1 or more"),
        (["--framework", "caffe"], "expected one of tensorflow"),
        (["--model-size", "much"], "a size such as 100MB"),
        (["--gpus-per-instance", "two"], "two"),
    ],
)
def test_bad_input_is_named(shell: InteractiveShell, words: list[str], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        run_line(["advise", *words], shell)


@pytest.mark.slow
def test_a_run_gives_its_measured_step_and_gradient(shell: InteractiveShell) -> None:
    run = api.submit("pass", name="night").wait(60)
    words = ["advise", "night", "--gpus-per-instance", "4", "--instances", "2", "--network", "10"]
    with pytest.raises(OptionError, match=r"run 1 has no step times: .* give --step"):
        run_line(words, shell)
    place = run.folder / EVENTS_FOLDER / STEP_TIMES_FOLDER / "rank-0"
    for window in range(12):
        seconds = {"compute": 1.25, "exchange": 0.75, "steps": 10, "gradient bytes": 1.34e9}
        append(place, 10 * window, seconds)
    given = run_line(words, shell).advice
    measured = "measured in run 1: 1,250 ms a step without the exchange, 1.34 GB of gradients"
    assert given.reasons[0] == measured
    assert "a step of 1,250 ms hides 625 ms" in str(given)
    assert "a step of 9,000 ms" in str(run_line([*words, "--step", "9"], shell).advice)
    assert [finding.code for finding in run.findings] == ["time.exchange"]
    assert "the exchange takes 38 % of a step" in summary_of(run).note
