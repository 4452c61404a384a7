"""`log_metrics`: numbers for the charts, from a program that knows nothing of TensorBoard.

They are written as a TensorBoard event file into the folder that `AIP_TENSORBOARD_LOG_DIR` names,
so that charts have one source whichever way a program reports.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from distrain_nb.worker.metrics import progress
from distrain_nb.worker.metrics.event_format import event, first_event, record
from distrain_nb.worker.metrics.goals import VARIABLE, report

FOLDER_VARIABLE = "AIP_TENSORBOARD_LOG_DIR"

_numbers = itertools.count()
_first_steps: Dict[int, int] = {}  # by `of`: steps that begin at 0 are over when they are reported


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
    metrics are printed instead; in a trial of a service that reads its log, the goal of the study
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
