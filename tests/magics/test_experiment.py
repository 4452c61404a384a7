"""`%distrain runs --experiment NAME`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from distrain_nb import api
from distrain_nb.errors import OptionError
from distrain_nb.magics.lines import run_line
from distrain_nb.run import Store
from distrain_nb.ui.experiment_table import ExperimentTable


def _runs(experiment: str) -> Any:
    shell = SimpleNamespace(user_ns={})
    return run_line(["runs", "--experiment", experiment], shell)  # type: ignore[arg-type]


def test_it_lists_the_runs_of_one_experiment(home: Path) -> None:
    for experiment, rate in (("rates", "0.1"), ("widths", "0.2"), ("rates", "0.3")):
        Store().add("", "local", experiment, "--on local", {"param": [f"lr={rate}"]})
    table = _runs("rates")
    assert isinstance(table, ExperimentTable)
    assert list(table.frame["param.lr"]) == [0.3, 0.1]
    assert [run.id for run in api.runs("rates")] == [3, 1]


def test_an_experiment_that_is_not_there_names_those_that_are(home: Path) -> None:
    with pytest.raises(OptionError, match=r"no run has --experiment 'rates'. There are none yet"):
        _runs("rates")
    Store().add("", "local", "rates", "--on local")
    with pytest.raises(OptionError, match=r"'rate'; did you mean rates\? There are rates"):
        _runs("rate")
