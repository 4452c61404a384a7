"""How far runs are, from what programs report and print, and when they end."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from distrain_nb.backends.cost import RunCost
from distrain_nb.run.progress import RunProgress, estimate, expected_end, progress_of
from distrain_nb.run.summary import _cost
from distrain_nb.worker.files.log import LineSplitter
from distrain_nb.worker.files.status import State, Status, Stretch
from distrain_nb.worker.metrics import progress
from distrain_nb.worker.metrics.bars import PrintedProgress, ProgressReading, read_progress
from distrain_nb.worker.metrics.progress import MOST_SAMPLES, KeptProgress, ProgressTracker, read
from distrain_nb.worker.supervisor.receiver import reading_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BEGIN = 1_700_000_000.0
STEPS, EPOCHS = 100, 10


class Moment(NamedTuple):
    """A step of a run is over: seconds since its begin, its epoch from 0, its number from 1."""

    at: float
    epoch: int
    step: int


def steps_of_a_run(compile_s: float, evaluation_s: float, seed: int) -> Iterator[Moment]:
    """Yield the steps of ten epochs, the first slow, with an evaluation after each epoch."""
    chance, at = random.Random(seed), compile_s
    for epoch in range(EPOCHS):
        for step in range(1, STEPS + 1):
            at += 0.5 * chance.uniform(0.7, 1.4)
            yield Moment(at, epoch, step)
        at += evaluation_s


def line(text: str, moving: bool = False) -> Callable[[Moment], bytes]:
    kind = b"O" if moving else b"o"

    def record(m: Moment) -> bytes:
        done = m.epoch * STEPS + m.step
        words = text.format(e=m.epoch + 1, s=m.step, done=done, percent=done // 10)
        return b"%.3f\t0\t%s\t%s\n" % (BEGIN + m.at, kind, words.encode())

    return record


def keras(m: Moment) -> bytes:
    heading = line(f"Epoch {{e}}/{EPOCHS}")(m) if m.step == 1 else b""
    bar = "\x1b[1m{s}/100\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━━━\x1b[0m \x1b[1m3s\x1b[0m 12ms/step"
    return heading + line(bar, moving=True)(m)


PRINTED: dict[str, Callable[[Moment], bytes]] = {
    "tqdm": line("train: {percent}%|██  | {done}/1000 [00:05<01:00, 2.00it/s, loss=0.3]", True),
    "tqdm of an epoch": line("Epoch {e}/10: {s}%|██  | {s}/100 [00:05<01:00,  1.20s/it]", True),
    "epochs with steps": line("Epoch [{e}/10], Step [{s}/100], Loss: 0.3"),
    "Keras": keras,
}
REPORTED: dict[str, Callable[[Moment], ProgressReading | None]] = {
    "log_metrics": lambda m: ProgressReading(
        "log_metrics", m.epoch * STEPS + m.step, STEPS * EPOCHS
    ),
    "Lightning": lambda m: ProgressReading("Lightning", m.epoch * STEPS + m.step, STEPS * EPOCHS),
    "Kubeflow": lambda m: ProgressReading("Kubeflow", (m.epoch * STEPS + m.step) // 10, 100, "%"),
    "one report an epoch": lambda m: (
        ProgressReading("log_metrics", m.epoch + 1, EPOCHS) if m.step == STEPS else None
    ),
}


def kept_after(kind: str, moments: list[Moment], folder: Path) -> KeptProgress:
    """Return what a supervisor has written down by then."""
    tracker = ProgressTracker(folder)
    for moment in moments:
        if kind in PRINTED:
            tracker.hear(PRINTED[kind](moment))
            tracker.look(at_once=True)
        elif reading := REPORTED[kind](moment):
            tracker.take(reading, BEGIN + moment.at)
    tracker.look(at_once=True)
    kept = read(folder)
    assert kept is not None
    return kept


@pytest.mark.parametrize("kind", [*PRINTED, *REPORTED])
@pytest.mark.parametrize(("compile_s", "evaluation_s"), [(0.0, 0.0), (60.0, 0.0), (20.0, 8.0)])
def test_the_end_is_known_within_a_tenth_after_a_fifth(
    kind: str, compile_s: float, evaluation_s: float, tmp_path: Path
) -> None:
    moments = list(steps_of_a_run(compile_s, evaluation_s, seed=len(kind)))
    end = moments[-1].at + evaluation_s
    at = next(m.at for m in moments if (m.epoch, m.step) == (2, 20)) if "epoch" in kind else end / 5
    if kind == "one report an epoch":
        at = max(at, moments[2 * STEPS - 1].at + evaluation_s)
    at = max(at, compile_s + 20)
    kept = kept_after(kind, [m for m in moments if m.at <= at], tmp_path)
    left = estimate(kept.times, kept.dones, kept.total, BEGIN + at)
    assert left is not None
    assert at + left.likely == pytest.approx(end, rel=0.1)
    assert at + left.least <= 1.05 * end
    assert at + left.most >= 0.95 * end


def spaced(*seconds: float) -> list[float]:
    times = [0.0]
    for pause in seconds:
        times.append(times[-1] + pause)
    return times


def test_a_slow_first_step_and_one_pause_do_not_count() -> None:
    times = spaced(300, *[1.0] * 20, 200, *[1.0] * 20)
    left = estimate(times, range(len(times)), 100, times[-1])
    assert left
    assert left.least == pytest.approx(58, rel=0.05)
    assert left.most > 4 * left.least  # it may pause again
    assert left.text == ""


def test_lines_that_come_at_one_time_leave_an_estimate_or_none() -> None:
    """A rank that was held up prints many at once: a division by 0 broke the view of its run."""
    drawn = random.Random(1)
    for count in range(2, 40):
        for share in (0.0, 0.1, 0.5, 0.9):
            times, now = [100.0], 100.0
            for _ in range(count):
                now += drawn.random() if drawn.random() < share else 0.0
                times.append(now)
            left = estimate(times, range(len(times)), 2 * count, now + 1.0)
            assert left is None or left.least <= left.likely <= left.most


def test_pauses_that_come_again_count() -> None:
    times = spaced(5, *([1.0] * 10 + [30.0]) * 4)
    left = estimate(times, range(len(times)), 450, times[-1])
    assert left
    assert left.likely == pytest.approx((450 - 45) * 40 / 11, rel=0.1)


@pytest.mark.parametrize(
    ("times", "now", "text"),
    [
        (spaced(), 0, None),
        (spaced(9, 1), 10, "1 to 2 min left"),
        (spaced(9, *[10.0] * 9), 99, "about 15 min left"),
        (spaced(9, *[10.0] * 9), 300, None),  # silent for too long
        (spaced(9, *[1.0] * 9), 18, "about 90 s left"),
        (spaced(9, *[300.0] * 9), 9 + 2700, "about 7.5 h left"),
        (spaced(1, *[10.0] * 8, *[20.0] * 8), 241, "21 to 28 min left"),
    ],
)
def test_it_says_how_sure_it_is(times: list[float], now: float, text: str | None) -> None:
    left = estimate(times, range(len(times)), 100, now)
    if text is None:
        assert left is None
    else:
        assert left
        assert left.text == text


@pytest.mark.parametrize(
    ("lines", "reading"),
    [
        (["Epoch 1/3"], (0, 3, "epochs")),
        (["Epoch 0/9", "-----", "Epoch 1/9"], (1, 10, "epochs")),
        (["epoch 0/3: loss 0.4"], (1, 3, "epochs")),
        (["Epoch: 2 of 5 | loss 0.4 | 3 s"], (2, 5, "epochs")),
        (["Epoch 2/4", "batch 5/20 loss 1", "val batch 2/7"], (25, 80, "steps")),
        (["step 1,200/10,000 loss 0.2"], (1200, 10000, "steps")),
        (["map: 100%|█| 12/12 [00:01<00:00, 9 ex/s]", "12%|█ | 1/8 [00:01<00:09, 1.1s/it]"],
         (1, 8, "steps")),
        (["epochs:  50%|█| 2/4 [00:01<00:00, 9it/s]", "b:  10%|█ | 1/8 [00:01<00:09, 1.1s/it]"],
         (2, 4, "steps")),
        (["10%|█| 1/9 [0<0, 9it/s]", "99%|█| 9/9 [0<0, 9it/s]", "10%|█| 1/9 [0<0, 9it/s]"],
         (2, 0, "passes")),
        ([" 0%|  | 0/4 [0<?, ?it/s]", " 0%| | 0/25 [0<?, ?it/s]", "88%|█| 22/25 [9<1, 2it/s]",
          "100%|█| 25/25 [9<0, 2it/s]", "25%|█| 1/4 [9<27, 9s/it]", " 4%| | 1/25 [0<9, 2it/s]"],
         (1, 4, "steps")),
        (["Epoch 3:  45%|█ | 45/99 [00:04<00:05, 9.9it/s, v_num=1]"], (1, 0, "passes")),
        (["[service] distrain: 300 of 1000 steps"], (300, 1000, "steps")),
        (["[service] distrain: 40 of 100 %"], (40, 100, "%")),
    ],
)  # fmt: skip
def test_what_printed_lines_say(lines: list[str], reading: tuple[float, float, str]) -> None:
    printed = PrintedProgress()
    heard = [printed.hear(0, text) for text in lines]
    last = next(r for r in reversed(heard) if r)
    assert (last.done, last.total, last.unit) == reading


@pytest.mark.parametrize(
    "text",
    ["loss 3/4", "w.bin: 10%|█| 100M/1.00G [00:01<00:09, 90MB/s]", "at 12/11/2026", "epoch 4/3",
     "acc 45%", "step 3", "downloading 3/7 files"],
)  # fmt: skip
def test_other_lines_say_nothing(text: str) -> None:
    seen = read_progress(text)
    assert seen is None or (seen.bar is None and seen.epoch is None)


def test_who_reports_beats_what_is_printed(tmp_path: Path) -> None:
    tracker = ProgressTracker(tmp_path)
    tracker.take(ProgressReading("log_metrics", 3, 10), BEGIN)
    tracker.hear(LineSplitter(0, "o").feed(b"Epoch [1/10], Step [1/5]\n"))
    tracker.look(at_once=True)
    kept = read(tmp_path)
    assert kept and (kept.source, kept.done, kept.total) == ("log_metrics", 3, 10)


def test_few_samples_are_kept_of_many(tmp_path: Path) -> None:
    tracker = ProgressTracker(tmp_path)
    for step in range(10_000):
        tracker.take(
            ProgressReading("log_metrics", step, 10_000), BEGIN + (100 if step else 0) + step
        )
    tracker.look(at_once=True)
    kept = read(tmp_path)
    assert kept is not None
    assert len(kept.times) <= MOST_SAMPLES
    assert kept.dones[:2] == (0, 1)
    assert kept.dones[-1] == 9_999


@pytest.mark.parametrize(
    ("pause", "expected"),
    [
        (10.0, ["distrain: 7 of 128 steps"]),
        (0.0, [f"distrain: {n} of 128 steps" for n in range(7, 128, 7)]),
    ],
)
def test_in_a_container_the_log_says_it_now_and_then(
    pause: float, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own lines come by the log, and aren't taken for the program's."""
    monkeypatch.setattr(progress, "SAY_EVERY_S", pause)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        tracker.hear(LineSplitter(2, "e").feed(f"{text}\n".encode()))

    tracker = ProgressTracker(tmp_path, say)
    for step in range(128):
        tracker.take(ProgressReading("Keras", step, 128), BEGIN + step)
        tracker.look(at_once=True)
    assert said == expected
    printed = PrintedProgress().hear(7, f"[service] {said[0]}")
    assert printed == ProgressReading("log_metrics", 7, 128)


def test_what_is_shown(tmp_path: Path) -> None:
    queued = Status(State.QUEUED, times={"queued": BEGIN})
    waiting = progress_of(tmp_path, queued, BEGIN + 60)
    assert waiting and (waiting.phase, waiting.since) == ("waiting", BEGIN)
    running = Status(State.RUNNING)
    assert progress_of(tmp_path, running, BEGIN) is None
    kept_after("log_metrics", list(steps_of_a_run(5, 0, 1))[:300], tmp_path)
    shown = progress_of(tmp_path, running, BEGIN + 165)
    assert isinstance(shown, RunProgress)
    assert shown.text.startswith("300 of 1,000 steps, about 6 min left")
    assert progress_of(tmp_path, Status(State.SUCCEEDED), BEGIN) is None
    end = expected_end(tmp_path, running, BEGIN + 165)
    assert end and f"about {(end - BEGIN - 165) / 60:.0f} min left" in shown.text
    assert expected_end(tmp_path, Status(State.SUCCEEDED), BEGIN) is None


def test_what_a_run_will_have_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six minutes of 9.5 are left at 60 USD an hour."""
    kept_after("log_metrics", list(steps_of_a_run(5, 0, 1))[:300], tmp_path)
    RunCost(hourly=60.0, currency="USD").write(tmp_path)
    trail = (Stretch("running", "running", BEGIN),)
    running = Status(State.RUNNING, times={"running": BEGIN}, trail=trail)
    end = expected_end(tmp_path, running, BEGIN + 165)
    assert end
    cost = RunCost.read(tmp_path)
    assert cost
    text = cost.text(running, BEGIN + 165, end)
    assert text == f"2.75 USD so far, about {(end - BEGIN) / 60:.2f} USD at the end"
    monkeypatch.setattr(time, "time", lambda: BEGIN + 165)
    assert _cost(cost, tmp_path, running) == text


@pytest.mark.parametrize(
    ("status", "reading"),
    [
        ({"progressPercentage": 0, "metrics": [{"name": "total_steps", "value": "40"}]}, (0, 40)),
        (
            {
                "progressPercentage": 7,
                "metrics": [
                    {"name": "current_step", "value": "3"},
                    {"name": "total_steps", "value": "40"},
                ],
            },
            (3, 40),
        ),
        ({"progressPercentage": 100, "metrics": [{"name": "loss", "value": "0.5"}]}, (40, 40)),
    ],
)
def test_steps_in_what_transformers_sends(
    status: dict[str, object], reading: tuple[float, float]
) -> None:
    """As `KubeflowCallback` of transformers 5.24 sends them, from its begin to its end."""
    heard = reading_of(status, 40.0)
    assert heard and (heard.done, heard.total) == reading
