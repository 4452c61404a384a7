"""Time in which a GPU computes and the program is away. `benchmarks/gpu.py` shows it on a GPU; here
a queue with a clock of its own stands for one, as no event of CUDA can be recorded without."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from distrain_nb.run.metrics.events import table
from distrain_nb.worker.metrics import step_times
from distrain_nb.worker.metrics.gpu_work import GpuWork
from distrain_nb.worker.metrics.step_times import CLOCK, timed


class Gpu:
    """Does what it is handed in turn; an event is reached when all before it is done."""

    def __init__(self) -> None:
        self.now = self.free_at = 100.0
        self.is_capturing = self.is_lost = False
        self.recorded = 0
        self.used = {1}  # of two GPUs, by their numbers

    def device_count(self) -> int:
        return 2

    def current_device(self) -> int:
        return 0

    def current_stream(self, device: int) -> int:
        return device

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def work(self, seconds: float) -> None:
        self.free_at = max(self.now, self.free_at) + seconds

    def wait(self) -> None:
        self.now = max(self.now, self.free_at)

    def is_initialized(self) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return self.is_capturing

    def Event(self, *, enable_timing: bool) -> Event:  # noqa: N802 # as torch.cuda has it
        assert enable_timing
        if self.is_lost:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return Event(self)


class Event:
    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.at = gpu, 0.0

    def record(self, stream: int) -> None:
        assert stream in self.gpu.used, "a context on a GPU that the program has not used"
        self.gpu.recorded += 1
        self.at = max(self.gpu.now, self.gpu.free_at)

    def query(self) -> bool:
        return self.gpu.now >= self.at

    def elapsed_time(self, other: Event) -> float:
        return 1000 * (other.at - self.at)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu()
    compiler = SimpleNamespace(is_compiling=lambda: False)
    native = SimpleNamespace(_cuda_hasPrimaryContext=lambda device: device in gpu.used)
    torch = SimpleNamespace(cuda=gpu, compiler=compiler, _C=native)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(step_times, "_now", lambda: gpu.now)
    return gpu


def train(
    gpu: Gpu, folder: Path, data: float, work: float, rest: float, waits_every: int
) -> dict[str, int]:
    """Train with these seconds a step, and return the share of each kind, in percent."""
    CLOCK.begin(folder)
    optimizer = SimpleNamespace(param_groups=[])
    for step in range(1, 101):
        with timed("data"):
            gpu.sleep(data)
        gpu.work(work)
        CLOCK.optimized(optimizer)
        if step % waits_every == 0:
            gpu.wait()
        gpu.sleep(rest)
    CLOCK.end()
    rows = table(folder).query("step > 1")
    seconds = rows[["data", "compute", "save", "rest"]].mul(rows["steps"], axis=0).sum()
    return {str(kind): round(100 * part / seconds.sum()) for kind, part in seconds.items() if part}


def test_waiting_for_the_gpu_is_computing(gpu: Gpu, tmp_path: Path) -> None:
    shares = train(gpu, tmp_path, data=0.02, work=0.05, rest=0.03, waits_every=1)
    assert shares == pytest.approx({"data": 20, "compute": 50, "rest": 30}, abs=2)


def test_what_is_done_while_the_gpu_works_costs_nothing(gpu: Gpu, tmp_path: Path) -> None:
    shares = train(gpu, tmp_path, data=0.02, work=0.06, rest=0.01, waits_every=2)
    # Of two steps the GPU works for 120 ms of 150: it is idle for the last data and the rest.
    assert shares["compute"] == pytest.approx(80, abs=5), shares


def test_a_gpu_that_is_idle_hides_nothing(gpu: Gpu, tmp_path: Path) -> None:
    shares = train(gpu, tmp_path, data=0.03, work=0, rest=0.03, waits_every=1)
    assert shares == {"data": 50, "rest": 50}


def test_nothing_is_recorded_into_a_graph(gpu: Gpu) -> None:
    gpu.is_capturing = True
    work = GpuWork()
    work.leave(0.0)
    work.return_(1.0)
    assert (work.take(), gpu.recorded) == (0.0, 0)


def test_an_error_of_the_gpu_is_left_to_the_program(gpu: Gpu) -> None:
    gpu.is_lost = True
    work = GpuWork()
    work.leave(0.0)
    gpu.is_lost = False
    work.leave(1.0)
    work.return_(2.0)
    assert (work.take(), gpu.recorded) == (0.0, 0)


def test_a_gpu_that_the_program_has_not_used_is_left_alone(gpu: Gpu) -> None:
    gpu.used = set()
    work = GpuWork()
    work.leave(0.0)
    work.return_(1.0)
    assert gpu.recorded == 0
    gpu.used = {1}
    work.leave(gpu.now)
    work.return_(gpu.now)
    assert (work.take(), gpu.recorded) == (0.0, 2)
