"""`log_metrics`, as a program in a rank uses it; read back by TensorBoard's own reader."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from distrain_nb import log_metrics
from distrain_nb.worker.metrics import writer
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE
from tests.disks import fill, small_disk


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(writer, "_reports", writer._Reports())
    return tmp_path


def read(folder: Path, tag: str) -> list[tuple[int, float]]:
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def test_tensorboard_reads_what_it_writes(folder: Path) -> None:
    log_metrics(step=0, loss=0.5)
    log_metrics({"train/accuracy": 0.25, "学習": 1}, step=300)
    log_metrics(step=-1, loss=1e300)
    assert read(folder, "loss") == [(0, 0.5), (-1, float("inf"))]
    assert read(folder, "train/accuracy") == [(300, 0.25)]
    assert read(folder, "学習") == [(300, 1.0)]


def test_without_a_step_each_name_counts_for_itself(folder: Path) -> None:
    log_metrics(loss=3.0)
    log_metrics(loss=2.0, accuracy=0.1)
    log_metrics(accuracy=0.2)
    assert read(folder, "loss") == [(0, 3.0), (1, 2.0)]
    assert read(folder, "accuracy") == [(0, np.float32(0.1)), (1, np.float32(0.2))]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        (True, 1.0),
        (np.float64(0.5), 0.5),
        (np.int64(7), 7.0),
        (np.array(2.5), 2.5),
        (torch.tensor(1.5, requires_grad=True), 1.5),
        (10**400, float("inf")),
    ],
)
def test_what_is_a_number(folder: Path, value: object, number: float) -> None:
    log_metrics(step=1, value=value)
    assert read(folder, "value") == [(1, number)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0.5", "'0.5', a str"),
        (None, "None, a NoneType"),
        (np.str_("3"), "a str_"),
        (torch.zeros(3), r"a Tensor of shape \(3,\): reduce it first"),
        (np.zeros((1, 2)), r"a ndarray of shape \(1, 2\)"),
        (1j, "1j, a complex"),
    ],
)
def test_what_is_none_is_named(folder: Path, value: object, words: str) -> None:
    with pytest.raises(TypeError, match=f"^metric 'my/loss': expected a number, got .*{words}"):
        log_metrics({"my/loss": value})
    assert list(folder.iterdir()) == []


def test_a_step_is_given_by_name_and_whole(folder: Path) -> None:
    with pytest.raises(TypeError, match=r"not 3; a step is given by its name"):
        log_metrics(3, loss=0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"step must be a whole number, not 1\.5"):
        log_metrics(step=1.5, loss=0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the name of a metric must be a string, not 1"):
        log_metrics({1: 0.5})  # type: ignore[dict-item]


def test_rank_0_reports_and_others_when_told_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    log_metrics(step=0, loss=0.5)
    assert list(folder.iterdir()) == []
    log_metrics(step=0, loss=0.5, every_rank=True)
    assert read(folder / "rank-1", "loss") == [(0, 0.5)]


def test_outside_a_run_it_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    log_metrics(step=3, loss=0.25, accuracy=2 / 3)
    assert capsys.readouterr().out == "step 3  loss 0.25  accuracy 0.666667\n"


def test_forked_processes_and_threads_do_not_mix_their_records(folder: Path) -> None:
    def report(name: str) -> None:
        for step in range(200):
            log_metrics({name: step}, step=step)

    threads = [threading.Thread(target=report, args=(f"thread{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if child == 0:
        report("child")
        os._exit(0)
    for thread in threads:
        thread.join()
    assert os.waitpid(child, 0)[1] == 0
    expected = [(step, float(step)) for step in range(200)]
    for name in ("thread0", "thread1", "thread2", "child"):
        assert read(folder, name) == expected
    assert len(list(folder.iterdir())) == 2


def test_files_are_read_in_the_order_in_which_they_were_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_numbers", itertools.count(8))
    for step in range(4):
        monkeypatch.setattr(writer, "_reports", writer._Reports())
        log_metrics(step=step, loss=1.0)
    assert [step for step, _ in read(folder, "loss")] == [0, 1, 2, 3]


def test_a_full_disk_costs_the_metrics_and_not_the_training(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        monkeypatch.setenv(FOLDER_VARIABLE, str(disk))
        log_metrics(step=0, loss=1.0)
        filler = fill(disk)
        open_files = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.warns(UserWarning, match="metrics could not be written: .*No space left"):
            for step in range(1, 500):
                log_metrics(step=step, loss=1.0)
        assert len(list(Path("/proc/self/fd").iterdir())) <= open_files
        assert len(list(disk.iterdir())) == 2, "one event file, and what fills the disk"
        filler.unlink()
        log_metrics(step=500, loss=0.5)
        assert read(disk, "loss")[-1] == (500, 0.5)


def test_a_folder_that_can_not_be_made_costs_the_metrics_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, "/dev/full/metrics")
    with pytest.warns(UserWarning, match="metrics could not be written: .*Not a directory"):
        log_metrics(step=0, loss=1.0)
