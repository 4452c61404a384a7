"""`log_metrics`: numbers for the charts, from a program that knows nothing of TensorBoard.

They are written as a TensorBoard event file into the folder that `AIP_TENSORBOARD_LOG_DIR` names,
so that charts have one source whichever way a program reports.

Reports of a trial's goals to the service that tunes its study, besides the charts.

Vertex AI reads a file: the last reports, a line of JSON each, with the names and the texts that the
package `cloudml-hypertune` gives them. SageMaker looks for them in the log: each is printed, in a
line of its own, with all its digits.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import struct
import threading
import time
import warnings
from collections import deque
from pathlib import Path
from typing import Any, Deque, Dict, List, Mapping, Optional, Tuple

from distrain_nb.worker.metrics import progress
from distrain_nb.worker.metrics.crc32c import crc32c, masked

VARIABLE = "DISTRAIN_GOALS"  # the names of metrics that are goals, as a JSON list
# The hyperparameters of which a tuning job of SageMaker gives each trial values of its own,
# separated by commas; set in its trials alone.
TUNED_VARIABLE = "DISTRAIN_TUNED"
MOST_REPORTS = 100

TRIAL_VARIABLE, FILE_VARIABLE = "CLOUD_ML_TRIAL_ID", "CLOUD_ML_HP_METRIC_FILE"
DEFAULT_FILE = "/tmp/hypertune/output.metrics"

_goal_reports: Deque[str] = deque(maxlen=MOST_REPORTS)


def report(step: int, numbers: Mapping[str, float]) -> None:
    """Report those of the numbers that are goals, of that step. Raises OSError."""
    goals = json.loads(os.environ.get(VARIABLE) or "[]")
    values = {name: number for name, number in numbers.items() if name in goals}
    if TUNED_VARIABLE in os.environ:
        for name, number in values.items():
            print(f"step {step}  {name} {_written(number)}", flush=True)
    elif values and os.environ.get(TRIAL_VARIABLE):
        _append(step, values)


def _written(number: float) -> str:
    """Return the shortest text that is read back as the same number."""
    text = repr(float(number))
    return text[:-2] if text.endswith(".0") else text


def _append(step: int, values: Mapping[str, float]) -> None:
    """Append values to the one file of them all, which is written anew each time."""
    common = {
        "timestamp": time.time(),
        "trial": os.environ[TRIAL_VARIABLE],
        "global_step": str(step),
        "checkpoint_path": "",
    }
    for name, number in values.items():
        _goal_reports.append(json.dumps({**common, name: str(number)}, sort_keys=True))
    path = Path(os.environ.get(FILE_VARIABLE) or DEFAULT_FILE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in _goal_reports), encoding="utf-8")


FOLDER_VARIABLE = "AIP_TENSORBOARD_LOG_DIR"
FILE_VERSION = b"brain.Event:2"
# A field of our own in Summary.Value, which other readers step over: the number as float64, where
# `simple_value`, a float32, has lost some of it.
EXACT_FIELD = 50064

_numbers = itertools.count()


def log_metrics(
    metrics: Optional[Mapping[str, Any]] = None,
    *,
    step: Optional[int] = None,
    of: Optional[int] = None,
    every_rank: bool = False,
    **values: Any,
) -> None:
    """Report metrics of the training: `log_metrics(step=3, loss=0.25, accuracy=0.9)`.

    Names that are no identifiers go into a mapping: `log_metrics({"loss/train": 0.25}, step=3)`.
    A value is a number, a NumPy scalar or a tensor with one element and no dimensions. Without
    `step`, each name counts its own calls from 0. `of` is how many steps there are:
    `log_metrics(step=3, of=100)` shows the run's progress, with or without metrics. Only rank 0
    reports, unless `every_rank` is true: then each rank is a series of its own. Outside a run the
    metrics are printed instead; in a trial on SageMaker, which reads its log, the goal of the study
    is printed too.

    Raises TypeError for anything else, naming the metric.
    """
    numbers = _numbers_of(metrics, values)
    step = None if step is None else _step(step)
    if of is not None:
        _report_progress(step, _step(of, "of"))
    rank = os.environ.get("RANK", "0")
    if rank == "0" or every_rank:
        _report(
            os.environ.get(FOLDER_VARIABLE), "rank-" + rank if every_rank else "", step, numbers
        )


def append(folder: Path, step: int, numbers: Mapping[str, float]) -> None:
    """Add numbers to this process's event file in that folder; a full disk costs a warning."""
    with _reports.lock:
        _reports.write(folder, step, numbers)


def _numbers_of(
    metrics: Optional[Mapping[str, Any]], values: Mapping[str, Any]
) -> Dict[str, float]:
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(
            f"log_metrics takes a mapping from names to numbers, not {metrics!r}; "
            "a step is given by its name: log_metrics(step=3, loss=0.25)"
        )
    named = {**(metrics or {}), **values}
    return {_tag(name): _number(name, value) for name, value in named.items()}


def _tag(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a metric must be a string, not {name!r}")
    return name


def _number(name: str, value: Any) -> float:
    """Convert `value` to float; of arrays, of any framework, only a dimensionless one."""
    if isinstance(value, (bool, int, float)) or _dimensions(value) == ():
        try:
            return float(value.detach() if hasattr(value, "detach") else value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
        except (TypeError, ValueError):
            pass
    raise TypeError(f"metric {name!r}: expected a number, got {_described(value)}")


def _dimensions(value: Any) -> Optional[Tuple[Any, ...]]:
    shape = getattr(value, "shape", None)
    if isinstance(value, (str, bytes)) or shape is None:
        return None
    try:
        return tuple(shape)
    except (TypeError, ValueError):
        return None


def _described(value: Any) -> str:
    shape = _dimensions(value)
    if shape:
        kind = type(value).__name__
        return f"a {kind} of shape {shape!r}: reduce it first, for example with .mean()"
    return f"{value!r:.60}, a {type(value).__name__}"


def _step(step: Any, name: str = "step") -> int:
    try:
        return int(step.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"{name} must be a whole number, not {step!r}") from None


_first_steps: Dict[int, int] = {}  # by `of`: steps that begin at 0 are over when they are reported


def _report_progress(step: Optional[int], total: int) -> None:
    if step is None:
        raise TypeError("log_metrics(of=…) needs the step: log_metrics(step=3, of=100)")
    first = _first_steps.setdefault(total, step)
    if os.environ.get("RANK", "0") == "0":
        progress.report("log_metrics", min(step + (first == 0), total), total)


class _Reports:
    """The open event files of this process, and how often each name was reported."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # `on_stop` may interrupt a report with another
        self._files: Dict[Path, _EventFile] = {}
        self._calls: Dict[Tuple[str, str], int] = {}

    def steps(
        self, series: str, step: Optional[int], numbers: Mapping[str, float]
    ) -> Dict[int, Dict[str, float]]:
        """Return the numbers by the step that they belong to."""
        if step is not None:
            return {step: dict(numbers)}
        grouped: Dict[int, Dict[str, float]] = {}
        for tag, number in numbers.items():
            count = self._calls.get((series, tag), 0)
            self._calls[series, tag] = count + 1
            grouped.setdefault(count, {})[tag] = number
        return grouped

    def write(self, folder: Path, step: int, numbers: Mapping[str, float]) -> None:
        """Append numbers to the event file of a folder. A full disk only costs a warning."""
        try:
            if folder not in self._files:
                self._files[folder] = _EventFile(folder)
            self._files[folder].write(event(time.time(), step, numbers))
        except OSError as error:
            broken = self._files.pop(folder, None)
            if broken is not None:
                broken.close()
            warnings.warn(f"metrics could not be written: {error}", stacklevel=4)

    def forget_files(self) -> None:
        """Forget the files in a forked child: they are the parent's, and its lock may be held."""
        self.lock = threading.RLock()
        for file in self._files.values():
            file.close()
        self._files = {}

    def begin_run(self) -> None:
        """Count from 0, into new files."""
        self.forget_files()
        self._calls = {}


_reports = _Reports()
os.register_at_fork(after_in_child=lambda: _reports.forget_files())


def begin_run() -> None:
    """Have a rank that stays report to its present run alone."""
    _reports.begin_run()
    _first_steps.clear()


def _report(
    folder: Optional[str], series: str, step: Optional[int], numbers: Mapping[str, float]
) -> None:
    with _reports.lock:
        for at, group in _reports.steps(series, step, numbers).items():
            if folder:
                _reports.write(Path(folder, series), at, group)
                _tell_service(series, at, group)
            else:
                line = "  ".join(f"{name} {value:.6g}" for name, value in group.items())
                print(f"step {at}  {line}")


def _tell_service(series: str, step: int, numbers: Mapping[str, float]) -> None:
    """Report rank 0's numbers to the tuning service. A full disk only costs a warning."""
    if VARIABLE not in os.environ or series not in ("", "rank-0"):
        return
    try:
        report(step, numbers)
    except OSError as error:
        warnings.warn(f"goals could not be reported: {error}", stacklevel=5)


class _EventFile:
    """An event file of this process. Each record is one write, so readers see it at once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # As wide as can be: readers take files in the order of their names for the order of time.
        place = f"{socket.gethostname()}.{os.getpid()}.{next(_numbers):08d}"
        name = f"events.out.tfevents.{int(time.time()):010d}.{place}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(str(folder / name), flags, 0o644)
        try:
            self.write(first_event(time.time()))
        except OSError:  # nothing of it is left, however often it is tried
            self.close()
            os.unlink(str(folder / name))
            raise

    def write(self, data: bytes) -> None:
        content = record(data)
        if os.write(self._fd, content) != len(content):
            raise OSError("no space left for the record")

    def close(self) -> None:
        os.close(self._fd)


def record(data: bytes) -> bytes:
    """Return an event as it stands in a file."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        [
            length,
            struct.pack("<I", masked(crc32c(length))),
            data,
            struct.pack("<I", masked(crc32c(data))),
        ]
    )


def first_event(wall_time: float) -> bytes:
    """Return the event with which a file begins."""
    return _wall_time(wall_time) + _bytes_field(3, FILE_VERSION)


def event(wall_time: float, step: int, numbers: Mapping[str, float]) -> bytes:
    """Return numbers of one step, at that time in seconds since the epoch."""
    values: List[bytes] = [
        _bytes_field(1, _bytes_field(1, tag.encode("utf-8", "replace")) + _scalar(number))
        for tag, number in numbers.items()
    ]
    return (
        _wall_time(wall_time)
        + b"\x10"
        + _varint(step & 0xFFFFFFFFFFFFFFFF)
        + _bytes_field(5, b"".join(values))
    )


def _wall_time(seconds: float) -> bytes:
    return b"\x09" + struct.pack("<d", seconds)


def _scalar(number: float) -> bytes:
    try:
        short = struct.pack("<f", number)
    except OverflowError:
        short = struct.pack("<f", float("inf") if number > 0 else float("-inf"))
    if number != number or struct.unpack("<f", short)[0] == number:
        return b"\x15" + short
    return b"\x15" + short + _varint(EXACT_FIELD << 3 | 1) + struct.pack("<d", number)


def _bytes_field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
