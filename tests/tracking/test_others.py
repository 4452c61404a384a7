"""W&B and trackio, offline: a cell that knows of no ranks makes one run, by the run's name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.worker.rank.tracker_variables import names_of_run, variables

CELL = """\
import os
import trackio
import wandb
run = wandb.init(project="digits", dir=place)
run.log({"loss": 0.5})
run.finish()
trackio.init(project="digits", embed=False)
trackio.log({"loss": 0.5})
trackio.finish()
print(run.name, run.group)
"""


def test_what_the_user_has_set_stands(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text('{"name": "w16", "experiment": "widths"}')
    names = names_of_run(tmp_path)
    assert names == {"WANDB_NAME": "w16", "WANDB_RUN_GROUP": "widths"}
    assert variables(tmp_path, 0, 0, {}, names) == names
    assert variables(tmp_path, 0, 0, {"WANDB_NAME": "mine"}, names) == {"WANDB_RUN_GROUP": "widths"}
    assert variables(tmp_path, 1, 1, {}, names)["WANDB_MODE"] == "disabled"
    assert variables(tmp_path, 2, None, {}, names)["WANDB_MODE"] == "disabled"
    assert variables(tmp_path, 1, 1, {"WANDB_MODE": "offline"}, names)["WANDB_MODE"] == "disabled"
    elsewhere = tmp_path / "elsewhere"
    assert names_of_run(elsewhere) == {}
    apart = variables(elsewhere, 1, 1, {"TRACKIO_DIR": "/shared"}, {})
    assert apart["TRACKIO_DIR"] == str(tmp_path / "elsewhere" / "trackio" / "1")


@pytest.mark.slow
def test_two_ranks_are_one_run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "wandb"
    place.mkdir()
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    run = api.submit(
        CELL, ranks_per_replica=2, param=f"place={str(place)!r}", name="w16", experiment="widths",
        wait=True,
    )  # fmt: skip
    assert run.logs(rank=0).endswith("w16 widths")
    assert len(list(place.glob("wandb/offline-run-*"))) == 1
    with closing(sqlite3.connect(tmp_path / "trackio" / "digits.db")) as database:
        assert database.execute("SELECT count(*) FROM metrics").fetchone() == (1,)
