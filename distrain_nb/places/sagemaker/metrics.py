"""Metrics by definition: numbers that stand in the log, as the service finds them there too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.remote.service import LogEntry

if TYPE_CHECKING:
    from distrain_nb.backends.remote.service import Cursor

_RANK = re.compile(r"\[rank (\d+)\] ")
_COUNTS = "metrics"  # in the cursor


@dataclass(frozen=True)
class MetricDefinitions:
    """The patterns of metrics by name. The first group of each pattern is the number."""

    patterns: Mapping[str, re.Pattern[str]]

    @classmethod
    def of(cls, definitions: Iterable[Mapping[str, str]]) -> MetricDefinitions:
        """Read the request's `MetricDefinitions`."""
        return cls(
            {definition["Name"]: re.compile(definition["Regex"]) for definition in definitions}
        )

    def read(
        self, entries: Iterable[LogEntry], before: Cursor, after: Cursor
    ) -> tuple[list[LogEntry], Cursor]:
        """Return the lines with their numbers, and the cursor with the count of each metric.

        Each metric counts its own steps, from 0. Only rank 0 reports, or the first host if lines
        don't name their rank.
        """
        counts = Counter(cast("dict[str, int]", before.get(_COUNTS, {})))
        measured = [self._with_points(entry, counts) for entry in entries]
        return measured, {**after, _COUNTS: dict(counts)} if counts else after

    def _with_points(self, entry: LogEntry, counts: Counter[str]) -> LogEntry:
        if not self.patterns or not _reports(entry):
            return entry
        points = []
        for name, value in self._numbers(entry.text):
            points.append((name, counts[name], value))
            counts[name] += 1
        return entry._replace(points=tuple(points))

    def _numbers(self, text: str) -> Iterator[tuple[str, float]]:
        for name, pattern in self.patterns.items():
            match = pattern.search(text)
            number = _number(match[1]) if match else None
            if number is not None:
                yield name, number


def _reports(entry: LogEntry) -> bool:
    match = _RANK.match(entry.text)
    return match[1] == "0" if match else entry.role == "primary"


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
