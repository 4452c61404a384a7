"""What is kept of an ended run's metrics, so that long lists are quick."""

from __future__ import annotations

import json
from pathlib import Path

import tensorboardX

from distrain_nb.run.pages.best_metric import BestMetric, final_metric_values
from distrain_nb.worker.files.folder import METRICS_FILE
from distrain_nb.worker.metrics import event_format, writer


def write(folder: Path, *losses: float) -> None:
    events = writer._EventFile(folder / "tensorboard")
    for step, loss in enumerate(losses):
        events.write(event_format.event(1.0, step, {"loss": loss}))


def test_it_is_kept_until_the_event_files_change(tmp_path: Path) -> None:
    assert final_metric_values(tmp_path).best is None
    write(tmp_path, 3.0, 1.0, 2.0)
    found = final_metric_values(tmp_path)
    assert found.last == {"loss": 2.0}
    assert found.best == BestMetric("loss", "min", 1.0)

    kept = tmp_path / METRICS_FILE
    kept.write_text(kept.read_text().replace('"loss": 2.0', '"loss": 7.0'))
    assert final_metric_values(tmp_path).last == {"loss": 7.0}  # nothing else was read
    write(tmp_path, 0.5)
    assert final_metric_values(tmp_path).best == BestMetric("loss", "min", 0.5)


def test_what_cannot_be_read_is_read_from_the_event_files(tmp_path: Path) -> None:
    write(tmp_path, 3.0)
    for odd in ("", "[]", "{}", '{"size": 1}', "\0"):
        (tmp_path / METRICS_FILE).write_text(odd)
        assert final_metric_values(tmp_path).last == {"loss": 3.0}


def test_hyperparameters_on_which_sessions_agree_are_kept_too(tmp_path: Path) -> None:
    for name, rate in (("first", 0.5), ("second", 0.25)):
        with tensorboardX.SummaryWriter(str(tmp_path / "tensorboard")) as summary:
            summary.add_hparams({"lr": rate, "layers": 3, "nesterov": True, name: "own"}, {}, name)
    found = {"layers": 3, "nesterov": True, "first": "own", "second": "own"}
    assert final_metric_values(tmp_path).hyperparameters == found
    assert final_metric_values(tmp_path).hyperparameters == found  # as it was kept
    kept = json.loads((tmp_path / METRICS_FILE).read_text())
    del kept["values"]["hyperparameters"]  # an earlier version
    (tmp_path / METRICS_FILE).write_text(json.dumps(kept))
    assert final_metric_values(tmp_path).hyperparameters == found
