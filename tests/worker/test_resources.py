"""What ranks use of the machine: real processes, and a management library compiled here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.run.metrics.events import Key, scalars
from distrain_nb.worker.machine import sockets
from distrain_nb.worker.machine.gpus import Gpu, Gpus, visible
from distrain_nb.worker.metrics.resources import SampledProcess, Sampler
from tests.conftest import eventually

BUSY_CHILD = """
import subprocess, sys
held = bytearray(80_000_000)
subprocess.run([sys.executable, "-c", "x = bytearray(60_000_000)\\nwhile True: pass"])
"""
NVML = """
#include <string.h>
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu, compute; } process;
static long devices[3] = {10, 20, 30};
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = COUNT; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **device) {
    if (n >= 3) return 2;
    *device = &devices[n];
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    if (strcmp(uuid, "GPU-c")) return 6;
    *device = &devices[2];
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization *found) {
    found->gpu = *(long *)device;
    found->memory = 0;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *found) {
    found->used = *(long *)device * 1000000;
    found->total = 80000000000;
    return MEMORY_STATUS;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    strncpy(name, "NVIDIA H100 80GB HBM3", length);
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *found) {
    process here[3] = {{7, 64000000000, -1, -1}, {8, 1, -1, -1}, {9, -1, -1, -1}};
    *count = device == &devices[0] ? 3 : 0;
    memcpy(found, here, *count * sizeof(process));
    return 0;
}
"""


def library(folder: Path, count: int = 3, memory_status: int = 0) -> str:
    """A library with the calls that we use; device n is 10 × (n + 1) % busy."""
    (folder / "nvml.c").write_text(NVML)
    built = folder / f"nvml-{count}-{memory_status}.so"
    defined = [f"-DCOUNT={count}", f"-DMEMORY_STATUS={memory_status}"]
    command = ["gcc", "-shared", "-fPIC", *defined, "-o", str(built), str(folder / "nvml.c")]
    subprocess.run(command, check=True)
    return str(built)


UNTIL_SEEN = """
import os, time
kept = [0] * 10_000_000
while not os.path.exists({seen!r}):
    time.sleep(0.1)
"""


@pytest.fixture
def busy() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", BUSY_CHILD], start_new_session=True)
    yield process.pid
    os.killpg(process.pid, 9)
    process.wait()


def test_a_process_counts_with_all_below_it(tmp_path: Path, busy: int) -> None:
    Sampler(tmp_path, [SampledProcess("rank 0", busy, {})], every=0.2).start()

    def lines() -> dict[str, float]:
        found = scalars(tmp_path / "resources")
        return {key.tag: points["value"].max() for key, points in found.items()}

    assert eventually(lambda: lines().get("memory MB", 0) > 140)
    assert eventually(lambda: lines()["cpu %"] > 5)
    assert lines()["cpu %"] < 150, "one busy process is one CPU"


SENDS = """
import socket, time
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname()) as out, server.accept()[0] as into:
        while True:
            out.sendall(bytes(200_000))
            left = 200_000
            while left:
                left -= len(into.recv(left))
            time.sleep(0.01)
"""


def test_the_host_s_network_stands_with_its_first_rank(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SENDS]) as sending:
        processes = [SampledProcess(f"rank {n}", sending.pid, {}) for n in (0, 1)]
        Sampler(tmp_path, processes, every=0.2).start()
        tags = ("host network in MB/s", "host network out MB/s")

        def rates(rank: str) -> list[float]:
            found = scalars(tmp_path / "resources")
            return [found[Key(rank, tag)]["value"].max() for tag in tags if Key(rank, tag) in found]

        assert eventually(lambda: len(rates("rank 0")) == 2 and min(rates("rank 0")) > 0.5)
        assert not rates("rank 1")
        sending.kill()


def test_what_a_bridge_carries_counts_once(tmp_path: Path) -> None:
    before = sockets.traffic(interfaces=tmp_path)
    names = [path.name for path in Path("/sys/class/net").iterdir()]
    for name in names:
        (tmp_path / name / "brport").mkdir(parents=True)
    assert sockets.traffic(interfaces=tmp_path) == (0, 0)
    assert min(before) > 0


def test_sampling_ends_with_the_processes(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    sampler = Sampler(tmp_path, [SampledProcess("rank 0", gone.pid, {})], every=0.05)
    sampler.start()
    assert eventually(lambda: not sampler._thread.is_alive())
    assert not (tmp_path / "resources").exists()


@pytest.mark.parametrize("launcher", ["local", pytest.param("mpi", marks=pytest.mark.slow)])
def test_each_rank_of_a_run_is_a_line(home: Path, launcher: str) -> None:
    seen = home / "seen"
    code = UNTIL_SEEN.format(seen=str(seen))
    chosen = {} if launcher == "local" else {"launcher": launcher}
    run = api.submit(code, ranks_per_replica=2, **chosen)

    def sampled(rank: str) -> bool:
        found = scalars(run.folder / "resources")
        memory, cpu = (found.get(Key(rank, tag)) for tag in ("memory MB", "cpu %"))
        return cpu is not None and memory is not None and bool(memory["value"].max() > 80)

    assert eventually(lambda: sampled("rank 0") and sampled("rank 1"))
    seen.touch()
    run.wait(60)
    assert set(run.resources()["series"]) == {"rank 0", "rank 1"}


@pytest.mark.parametrize(
    ("environment", "busy"),
    [
        ({}, 10),
        ({"LOCAL_RANK": "1"}, 20),
        ({"LOCAL_RANK": "4"}, 20),
        ({"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "0,2"}, 30),
        ({"CUDA_VISIBLE_DEVICES": "GPU-c,0"}, 30),
    ],
)
def test_a_rank_s_gpu_is_found(tmp_path: Path, environment: dict[str, str], busy: float) -> None:
    gpus = Gpus.open(library(tmp_path))
    assert gpus is not None
    assert gpus.of(environment) == {"gpu %": busy, "gpu memory MB": busy}


@pytest.mark.parametrize("visible", ["", "-1", "GPU-none", "7"])
def test_without_a_gpu_of_its_own_a_rank_has_no_numbers(tmp_path: Path, visible: str) -> None:
    gpus = Gpus.open(library(tmp_path))
    assert gpus is not None
    assert gpus.of({"CUDA_VISIBLE_DEVICES": visible}) == {}


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (None, ["0", "1"]),
        ("", []),
        ("-1", []),
        ("1", ["1"]),
        ("2", []),
        ("1,2,0", ["1"]),
        ("0,-1,1", ["0"]),
        ("0,0", []),
        ("GPU-c,1", ["GPU-c", "1"]),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(given: str | None, seen: list[str]) -> None:
    """Of two GPUs; as PyTorch counted them on a machine with one."""
    assert visible({} if given is None else {"CUDA_VISIBLE_DEVICES": given}, 2) == seen


def test_what_kind_a_gpu_is_and_what_a_process_has_of_it(tmp_path: Path) -> None:
    gpus = Gpus.open(library(tmp_path))
    assert gpus is not None
    h100 = Gpu("NVIDIA H100 80GB HBM3", 80_000_000_000)
    assert gpus.offered({"CUDA_VISIBLE_DEVICES": "2,0"}) == [h100, h100]
    assert gpus.held_by(7, {}) == [64_000_000_000, 0, 0]
    assert gpus.held_by(9, {}) == [0, 0, 0], "the driver doesn't say how much"


def test_what_the_library_refuses_is_left_out(tmp_path: Path) -> None:
    gpus = Gpus.open(library(tmp_path, memory_status=3))
    assert gpus is not None
    assert gpus.of({}) == {"gpu %": 10}
    assert Gpus.open(library(tmp_path, count=0)) is None
    assert Gpus.open(str(tmp_path / "none.so")) is None
