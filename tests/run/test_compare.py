"""Runs as tables and side by side, from real runs on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from distrain_nb import api
from distrain_nb.errors import OptionError, RunFailed
from distrain_nb.program import Cell, Notebook
from distrain_nb.run.pages.best_metric import best_metric, kind_of
from distrain_nb.run.pages.compare import check_count
from distrain_nb.run.pages.compared_rows import differing, rows

pytestmark = pytest.mark.slow

TRAIN = """
import os
from distrain_nb import log_metrics
from tensorboardX import SummaryWriter
with SummaryWriter(os.environ["AIP_TENSORBOARD_LOG_DIR"]) as writer:
    writer.add_hparams({"half": rate / 2, "model": "small", "rate": 0.75}, {}, name="trial")
for step in range(5):
    log_metrics({"train/loss": rate / (step + 1), "val/accuracy": step / 10}, step=step)
if rate > 1 and os.environ["RANK"] == "0":  # once it has reported, whoever is first
    raise ValueError("too fast")
"""


def cell() -> api.Source:
    return api.Source(Cell("Cell In[1]", TRAIN), Notebook({"rate": 0.5}, (), Path.cwd()))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISTRAIN_HOME", str(tmp_path_factory.mktemp("home")))
        slow = api.submit(cell(), name="slow", experiment="rates", wait=True)
        fast = api.submit(cell(), name="fast", param=["rate=2.0"], ranks_per_replica=2)
        with pytest.raises(RunFailed):
            fast.wait()
        yield [slow.id, fast.id]


@pytest.mark.brief
def test_runs_differ_by_their_parameters_layout_and_end(two: list[int]) -> None:
    compared = api.compare(*two)
    assert compared.titles == (f"slow #{two[0]}", f"fast #{two[1]}")
    assert set(differing(compared.settings)) == {
        "--ranks-per-replica",
        "--param rate",
        "code",
        "hparam trial half",
    }
    assert {"state", "cause"} <= set(differing(compared.outcome))
    assert differing(compared.metrics) == ("train/loss",)
    table = {row.name: row for row in rows(compared)}
    assert list(table)[:2] == ["state", "cause"]
    assert set(list(table)[2:6]) == set(differing(compared.settings))
    assert table["train/loss"].best == (0,)
    assert table["val/accuracy"].best == ()  # the same in both
    assert [row.differs for row in table.values()] == sorted(
        (row.differs for row in table.values()), reverse=True
    )
    frame = compared.frame
    assert list(frame.index) == two
    assert frame.loc[two[1], "--param rate"] == "2.0"
    assert frame["hparam trial half"].tolist() == ["0.25", "1"]
    assert frame["hparam trial model"].tolist() == ["small", "small"]
    assert "too fast" in frame.loc[two[1], "cause"]
    assert frame["train/loss"].tolist() == pytest.approx([0.1, 0.4])


@pytest.mark.brief
def test_paths_of_data_are_shown_by_what_they_differ_in(home: Path) -> None:
    folder = home.resolve() / "some" / "folders" / "deep"
    for name in ("images", "shards"):
        (folder / name).mkdir(parents=True)
        api.submit(
            "train, eval_on", data=[f"train={folder / name}", f"eval_on={folder}"], wait=True
        )
    api.submit("1", wait=True)
    compared = api.compare(1, 2, 3)
    table = {row.name: row for row in rows(compared)}
    assert table["--data train"].texts == ("…/images", "…/shards", "")
    assert table["--data eval_on"].texts == (str(folder), str(folder), "")
    assert compared.frame["--data train"].tolist()[0] == str(folder / "images")


@pytest.mark.brief
def test_a_list_of_runs_has_a_frame(two: list[int]) -> None:
    frame = api.runs().frame
    assert list(frame.index) == two[::-1]
    assert frame["state"].tolist() == ["failed", "succeeded"]
    assert frame["experiment"].tolist() == ["", "rates"]
    assert frame["best_metric"].tolist() == ["val/accuracy"] * 2
    assert frame["best_value"].tolist() == pytest.approx([0.4, 0.4])
    assert (frame["duration"] > 0).all()
    assert frame["param.half"].tolist() == [1, 0.25]
    assert frame["param.model"].tolist() == ["small"] * 2
    assert frame["param.rate"].tolist() == [2.0, 0.75]  # what `--param` says comes first
    assert str(frame["submitted"].dt.tz) == "UTC"


@pytest.mark.brief
def test_no_runs_are_an_empty_frame(home: Path) -> None:
    assert api.runs().frame.empty


@pytest.mark.brief
def test_no_page_shows_hundreds() -> None:
    with pytest.raises(OptionError, match="50 runs at most, not 51"):
        check_count(51)


@pytest.mark.brief
def test_one_run_can_t_be_compared(two: list[int]) -> None:
    with pytest.raises(OptionError, match="two runs or more, not 1"):
        api.compare(two[0], "slow")


@pytest.mark.brief
@pytest.mark.parametrize(
    ("values", "judged"),
    [
        ({"lr": [1, 2], "loss": [3, 1, 2]}, ("loss", "min", 1)),
        ({"loss": [3, 1], "val_acc": [0.1, 0.9, 0.5]}, ("val_acc", "max", 0.9)),
        ({"loss": [1], "eval/loss": [np.nan, 5, np.inf]}, ("eval/loss", "min", 5)),
        ({"lr": [3, 2]}, ("lr", "last", 2)),
        ({"loss": [np.nan], "f1": [0.3]}, ("f1", "max", 0.3)),
        ({"eval_runtime": [1], "epoch_s": [3, 2], "loss": [2, 3]}, ("loss", "min", 2)),
        ({"lr": [3], "epoch_s": [3, 2, 4]}, ("epoch_s", "min", 2)),
    ],
)
def test_the_best_metric(values: dict[str, list[float]], judged: tuple[object, ...]) -> None:
    found = best_metric({tag: np.array(numbers, float) for tag, numbers in values.items()})
    assert found is not None
    assert (found.tag, found.kind, found.value) == judged


@pytest.mark.brief
@pytest.mark.parametrize(
    ("kind", "tags"),
    [
        ("min", ("epoch_s", "epoch_seconds", "step/ms", "seconds", "Epoch time", "train_runtime")),
        ("max", ("samples_per_second", "train/tokens_per_s", "images_per_sec")),
        ("last", ("lr", "steps", "epochs", "times", "time", "start_time", "wall_time", "params")),
    ],
)
def test_less_time_is_better_and_more_in_a_second(kind: str, tags: tuple[str, ...]) -> None:
    assert {tag: kind_of(tag) for tag in tags} == dict.fromkeys(tags, kind)


@pytest.mark.brief
def test_without_metrics_there_is_no_best() -> None:
    assert best_metric({}) is None
    assert best_metric({"loss": np.array([np.nan])}) is None
