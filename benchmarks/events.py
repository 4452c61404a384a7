"""Reading 1,000,000 scalars from an event file, against TensorBoard and tbparse.

`python benchmarks/events.py [SCALARS]`. torch's `SummaryWriter` writes one file of 10 tags. Each
reader, in a process of its own, reads every point of it into memory; then 1 % more is appended, and
it is asked again. The clock starts when the reader is imported. Memory is the peak of the resident
set above what the imports took. All readers must find the same sum of values.

- `ours`: `EventFolder`; every checksum is checked;
- `accumulator`: TensorBoard's `EventAccumulator` without its limit of 10,000 points a tag;
- `tbparse`: `SummaryReader(...).scalars`, which knows no second reading: it reads all again;
- `data_server`: TensorBoard's data server (compiled Rust), points taken over gRPC; checksums are
  checked only with `--checksum`, so that is given. Its memory is the server's own.

The last line is one JSON object of ratios of seconds, smaller is better: `ours_over_accumulator`,
`ours_over_tbparse`, `ours_over_data_server` (null where it does not run), and `reread_over_full`,
which is our second reading over our first.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe

if TYPE_CHECKING:
    from collections.abc import Callable

TAGS = 10
NAME = "events.out.tfevents.1700000000.host"


@dataclass(frozen=True)
class Measured:
    """`total` is the sum of all values after the second reading."""

    full_s: float
    again_s: float
    peak_mb: float
    total: float


def write(folder: Path, scalars: int) -> tuple[bytes, bytes]:
    """An event file of so many scalars, and the 1 % that is appended later."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), max_queue=10_000) as summary:
        _add(summary, range(scalars // TAGS))
        summary.flush()
        (file,) = folder.iterdir()
        first = file.stat().st_size
        _add(summary, range(scalars // TAGS, scalars // TAGS + scalars // TAGS // 100))
    data = file.read_bytes()
    file.unlink()
    return data[:first], data[first:]


def _add(summary: Any, steps: range) -> None:
    for step in steps:
        for tag in range(TAGS):
            summary.add_scalar(f"metric_{tag}/value", math.sin(step / 100 + tag), step)


def ours(folder: Path) -> Callable[[], float]:
    """`EventFolder`."""
    from distrain_nb.run.metrics.events import EventFolder

    events = EventFolder(folder)

    def read() -> float:
        events.read()
        return float(sum(events.points(key)["value"].sum() for key in events.keys))

    return read


def accumulator(folder: Path) -> Callable[[], float]:
    """`EventAccumulator`."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    loaded = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})

    def read() -> float:
        loaded.Reload()
        return sum(event.value for tag in loaded.Tags()["scalars"] for event in loaded.Scalars(tag))

    return read


def tbparse(folder: Path) -> Callable[[], float]:
    """`tbparse`."""
    from tbparse import SummaryReader

    return lambda: float(SummaryReader(str(folder)).scalars["value"].sum())


def data_server(folder: Path, scalars: int) -> Measured:
    """The server, which looks at the folder every second: its own clock is in its figures."""
    from tensorboard.context import RequestContext
    from tensorboard.data import grpc_provider
    from tensorboard.data.server_ingester import _make_stub
    from tensorboard.util.grpc_util import ChannelCredsType
    from tensorboard_data_server import server_binary

    port_file = folder.parent / "port"
    started = time.perf_counter()
    options = ["--checksum", "--reload=1", "--port=0", f"--port-file={port_file}"]
    options += ["--samples-per-plugin=scalars=all", f"--logdir={folder}"]
    server = subprocess.Popen([server_binary(), *options])
    try:
        port = _text_of(port_file)
        stub = _make_stub(f"localhost:{port}", ChannelCredsType.LOCAL)
        provider = grpc_provider.GrpcDataProvider("", stub)

        def all_of(last_step: int) -> float:
            while True:
                told = provider.list_scalars(
                    RequestContext(), experiment_id="", plugin_name="scalars"
                )
                tags = [series for run in told.values() for series in run.values()]
                if len(tags) == TAGS and all(tag.max_step >= last_step for tag in tags):
                    break
                time.sleep(0.01)
            read = provider.read_scalars(
                RequestContext(), experiment_id="", plugin_name="scalars", downsample=1 << 30
            )
            lines = [tag for run in read.values() for tag in run.values()]
            return float(sum(point.value for line in lines for point in line))

        all_of(scalars // TAGS - 1)
        full = time.perf_counter() - started
        started = _append(folder)
        total = all_of(scalars // TAGS + scalars // TAGS // 100 - 1)
        again = time.perf_counter() - started
        return Measured(full, again, _status_mb("VmHWM", server.pid), total)
    finally:
        server.kill()
        server.wait()


def _text_of(file: Path) -> str:
    while not (file.exists() and file.read_text().strip()):
        time.sleep(0.005)
    return file.read_text().strip()


def _append(folder: Path) -> float:
    """Append the rest of the events, and say when."""
    with (folder / NAME).open("ab") as file:
        file.write((folder.parent / "rest").read_bytes())
    return time.perf_counter()


def _status_mb(field: str, process: int | str = "self") -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(reader: str, folder: Path, scalars: int) -> Measured:
    """In this process, which must be fresh."""
    if reader == "data_server":
        return data_server(folder, scalars)
    read = {"ours": ours, "accumulator": accumulator, "tbparse": tbparse}[reader](folder)
    before = _status_mb("VmRSS")
    started = time.perf_counter()
    read()
    full = time.perf_counter() - started
    started = _append(folder)
    total = read()
    again = time.perf_counter() - started
    return Measured(full, again, _status_mb("VmHWM") - before, total)


def _child(reader: str, data: tuple[bytes, bytes], scalars: int) -> Measured:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        folder.mkdir()
        (folder / NAME).write_bytes(data[0])
        (folder.parent / "rest").write_bytes(data[1])
        command = [sys.executable, __file__, "--reader", reader, str(folder), str(scalars)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    return Measured(**json.loads(output.splitlines()[-1]))


def main(scalars: int) -> None:
    """Print a table of all readers, then the ratios."""
    rivals = ["accumulator", "tbparse"]
    rivals += ["data_server"] if find_spec("tensorboard_data_server") else []
    print(describe("torch", "tensorboard", "tbparse"))
    with tempfile.TemporaryDirectory() as place:
        data = write(Path(place) / "written", scalars)
    print(f"{scalars:,} scalars, {len(data[0]) / 1e6:.1f} MB")
    found = {reader: _child(reader, data, scalars) for reader in ["ours", *rivals]}
    for reader, measured in found.items():
        print(
            f"{reader:12} {measured.full_s:8.3f} s   1 % more {measured.again_s:8.3f} s"
            f"   peak {measured.peak_mb:7.1f} MB"
        )
    mine = found["ours"]
    if not all(math.isclose(mine.total, other.total, abs_tol=1e-3) for other in found.values()):
        raise SystemExit(f"the readers disagree: {found}")
    ratios: dict[str, float | None] = {
        f"ours_over_{rival}": round(mine.full_s / found[rival].full_s, 4) for rival in rivals
    }
    ratios.setdefault("ours_over_data_server", None)
    ratios["reread_over_full"] = round(mine.again_s / mine.full_s, 4)
    print(json.dumps(ratios))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--reader"]:
        print(json.dumps(measure(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])).__dict__))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
