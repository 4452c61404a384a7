"""What is kept of an ended run's metrics, so that long lists are quick."""

from __future__ import annotations

import json
from pathlib import Path

from distrain_nb.run.pages.best_metric import JUDGED_FILE, Best, judged_for_good
from distrain_nb.worker.metrics import writer


def write(folder: Path, *losses: float) -> None:
    events = writer._EventFile(folder / "tensorboard")
    for step, loss in enumerate(losses):
        events.write(writer.event(1.0, step, {"loss": loss}))


def test_it_is_kept_until_the_event_files_change(tmp_path: Path) -> None:
    assert judged_for_good(tmp_path).best is None
    write(tmp_path, 3.0, 1.0, 2.0)
    found = judged_for_good(tmp_path)
    assert found.last == {"loss": 2.0}
    assert found.best == Best("loss", "min", 1.0)

    kept = tmp_path / JUDGED_FILE
    told = json.loads(kept.read_text())
    kept.write_text(json.dumps({**told, "last": {"loss": 7.0}}))
    assert judged_for_good(tmp_path).last == {"loss": 7.0}  # nothing else was read
    write(tmp_path, 0.5)
    assert judged_for_good(tmp_path).best == Best("loss", "min", 0.5)


def test_what_cannot_be_read_is_read_from_the_event_files(tmp_path: Path) -> None:
    write(tmp_path, 3.0)
    for odd in ("", "[]", "{}", '{"size": 1}', "\0"):
        (tmp_path / JUDGED_FILE).write_text(odd)
        assert judged_for_good(tmp_path).last == {"loss": 3.0}
