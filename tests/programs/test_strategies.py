"""A script by three strategies, from files and from shards: a study, whose trials are compared."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distrain_nb import api, script, study
from distrain_nb.data import pack
from distrain_nb.run.pages.compared_rows import rows
from tests.programs.running import HERE

pytestmark = pytest.mark.timeout(900)
IMAGES = 24


@pytest.fixture
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script, synthetic images, and a list of them with their classes."""
    shutil.copytree(HERE / "strategies", tmp_path / "code")
    (tmp_path / "images").mkdir()
    random, lines = np.random.default_rng(0), []
    for number in range(IMAGES):
        path = tmp_path / "images" / f"{number}.jpg"
        Image.fromarray(random.integers(0, 255, (16, 16, 3), dtype="uint8")).save(path)
        lines.append(f"{path}\t{number % 4}\n")
    (tmp_path / "images.tsv").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "strategies"), [("files", ("ddp", "dp", "fsdp")), ("shards", ("ddp", "fsdp"))]
)
def test_strategies_side_by_side(folder: Path, source: str, strategies: tuple[str, ...]) -> None:
    train = folder / "images.tsv"
    if source == "shards":
        pack(str(train), str(folder / "shards"))
        train = folder / "shards"
    given = ("--gpus", 2, "--epochs", 2, "--train_data_path", "data:train", "--train_batch_size", 4)
    found = study.tune(
        script("code/train.py", *given),
        tune=f"strategy={'|'.join(strategies)}",
        search="grid",
        goal="min:epoch_s",
        data=f"train={train}",
        launcher="python",
        result="seen",
    ).wait(600)
    assert sorted(trial.params["strategy"] for trial in found.all_trials()) == [*strategies]
    for run in found.runs:
        assert run.results["seen"] == [list(range(IMAGES))] * 2, run.name
    compared = api.compare(*found.runs)
    table = {row.name: row for row in rows(compared)}
    assert sorted(table["--param strategy"].texts) == [*strategies]
    seconds = table["epoch_s"].numbers
    assert table["epoch_s"].best == (seconds.index(min(seconds, key=float)),)
