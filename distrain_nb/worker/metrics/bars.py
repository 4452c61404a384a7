"""Progress in printed lines: bars of tqdm, lines of Keras, "epoch 3/10" with or without steps.

Of several bars of one process the outermost counts: it began first. One that begins again and again
is a part of a whole that nobody knows, unless its epoch is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, NamedTuple, Optional, Tuple

# Who tells of progress, the most exact first. Those that report have a line each in that file.
SOURCES = ("log_metrics", "Kubeflow", "Lightning", "Keras", "rich", "tqdm", "text")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TQDM = re.compile(
    r"(?P<label>[^|]*?):?\s*\d+%\|[^|]*\|\s*(?P<done>[\d.]+)/(?P<total>[\d.]+)\s"
    r"\[[^\]]*?(?:\?|[\d.]+)\s?(?:(?P<unit>[A-Za-z_]+)/s|s/(?P<per>[A-Za-z_]+))"
)
_KERAS = re.compile(r"\s*(?P<done>\d+)/(?P<total>\d+) (?:\[[=>.]+\]|[━╸╺]+)")
_COUNT = re.compile(
    r"\b(?P<word>epoch|step|iteration|iter|batch)s?\b\W{0,3}(?P<done>\d[\d,]*)\W{0,2}"
    r"(?:/|\bof\b)\W{0,2}(?P<total>\d[\d,]*)",
    re.IGNORECASE,
)
OUR_LINE = re.compile(r"(?:\[service\] )?distrain: (\d+) of (\d+) (\S+)$")
_PASS = re.compile(r"\bepoch\W{0,3}\d+", re.IGNORECASE)
_UNITS = {"it": "steps", "iter": "steps", "iteration": "steps", "batch": "batches"}
_BYTES = re.compile(r"[kMGT]?i?B")


class ProgressReading(NamedTuple):
    """`done` of `total` units, of the whole run; a `total` of 0 is not known."""

    source: str
    done: float
    total: float
    unit: str = "steps"
    label: str = ""
    seconds_left: Optional[float] = None  # seconds, as the program says itself


class ProgressLine(NamedTuple):
    """What a line says: the epoch, and the place in it or in the whole; `is_heading` is whether it
    says no more than the epoch, which then begins."""

    source: str
    epoch: Optional[Tuple[int, int]]
    bar: Optional[Tuple[float, float]]
    unit: str = "steps"
    label: str = ""
    is_heading: bool = False


def read_progress(text: str) -> Optional[ProgressLine]:
    """Return what a printed line says of progress; None for nothing."""
    text = _STYLE.sub("", text)
    counts = {m["word"].lower(): m for m in _COUNT.finditer(text)}
    epoch = _numbers(counts.pop("epoch", None))
    bar = _TQDM.match(text)
    if bar:
        word = bar["unit"] or bar["per"] or "it"
        if _BYTES.fullmatch(word):  # a download
            return None
        unit, label = _UNITS.get(word.lower(), word), bar["label"].strip()
        return ProgressLine("tqdm", epoch, (float(bar["done"]), float(bar["total"])), unit, label)
    lines = _KERAS.match(text)
    if lines:
        return ProgressLine("text", epoch, (float(lines["done"]), float(lines["total"])))
    if counts:
        word, match = next(iter(counts.items()))
        return ProgressLine("text", epoch, _numbers(match), _UNITS.get(word, f"{word}s"))
    if epoch:
        rest = _COUNT.sub("", text)
        return ProgressLine("text", epoch, None, "epochs", "", not re.search(r"[A-Za-z0-9]", rest))
    return None


def _numbers(match: Optional[re.Match[str]]) -> Optional[Tuple[int, int]]:
    if match is None:
        return None
    done, total = (int(match[name].replace(",", "")) for name in ("done", "total"))
    return (done, total) if 0 <= done <= total and total > 0 else None


@dataclass
class _Bar:
    """A bar of one process, by its label."""

    process: int
    began: int
    line: ProgressLine
    passes: int = 0

    @property
    def order(self) -> Tuple[bool, bool, int, int]:
        done, total = self.line.bar or (0.0, 0.0)
        return self.passes > 0, done >= total, self.process, self.began

    @property
    def reading(self) -> ProgressReading:
        done, total = self.line.bar or (0.0, 0.0)
        if self.passes:
            return ProgressReading(self.line.source, self.passes, 0, "passes", self.line.label)
        return ProgressReading(self.line.source, done, total, self.line.unit, self.line.label)


class PrintedProgress:
    """What the processes of a run have printed of progress so far."""

    def __init__(self) -> None:
        self._bars: Dict[Tuple[int, str], _Bar] = {}
        self._epochs: Dict[int, Tuple[int, int]] = {}  # by process: those that are over, and all
        self._first: Dict[int, int] = {}  # by process, the number of its first epoch
        self._steps: Dict[int, float] = {}  # by process, steps of an epoch

    def hear(self, process: int, text: str) -> Optional[ProgressReading]:
        """Return where the run is after that line; None if it says nothing of it."""
        match = OUR_LINE.match(text)
        if match:
            return ProgressReading(SOURCES[0], float(match[1]), float(match[2]), match[3])
        line = read_progress(text)
        if line is None:
            return None
        if line.epoch:
            self._enter(process, line)
        if process in self._epochs and process == min(self._epochs):
            return self._in_epoch(process, line)
        return None if self._epochs else self._of_bars(process, line)

    def _enter(self, process: int, line: ProgressLine) -> None:
        number, total = line.epoch or (0, 0)
        first = self._first.setdefault(process, number)
        begins = line.is_heading or line.bar is not None
        # `epoch 0/9` of a loop from 0 is a heading of ten; `epoch 0/10: loss …` is one's report.
        total += first == 0 and line.is_heading
        over = number - (begins and first > 0) + (not begins and first == 0)
        self._epochs[process] = min(over, total), total

    def _in_epoch(self, process: int, line: ProgressLine) -> Optional[ProgressReading]:
        over, total = self._epochs[process]
        if line.bar is None:
            steps = self._steps.get(process, 1.0)
            return ProgressReading("text", over * steps, total * steps, self._unit(process))
        done, steps = line.bar
        if self._steps.setdefault(process, steps) != steps:  # evaluation
            return None
        return ProgressReading(line.source, over * steps + done, total * steps, "steps")

    def _unit(self, process: int) -> str:
        return "steps" if process in self._steps else "epochs"

    def _of_bars(self, process: int, line: ProgressLine) -> Optional[ProgressReading]:
        # Nested bars without a label are told apart by their totals.
        total = f" {line.bar[1]:g}" if line.bar and not line.label else ""
        key = process, re.sub(r"\d+", "", line.label) + line.unit + total
        bar = self._bars.get(key)
        if bar is None:
            bar = self._bars[key] = _Bar(process, len(self._bars), line)
            bar.passes = 1 if _PASS.search(line.label) else 0
        elif line.bar and bar.line.bar and line.bar[0] < bar.line.bar[0]:
            bar.passes += 1 + (bar.passes == 0)
        bar.line = line
        return min(self._bars.values(), key=lambda bar: bar.order).reading
