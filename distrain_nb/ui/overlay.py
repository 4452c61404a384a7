"""The metrics of several runs in one set of charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.run.charts.lines import ChartLine, Metrics
from distrain_nb.run.metrics.events import Key
from distrain_nb.run.metrics.non_scalars import NonScalars
from distrain_nb.run.pages.compare import Comparison, line_name, title

if TYPE_CHECKING:
    from pathlib import Path


class OverlaidMetrics(Metrics):
    """The metrics of several runs as those of one, with the run as the series."""

    in_bands = False  # the reader has chosen each run

    def __init__(self, folders: dict[str, Path]) -> None:
        self._runs = {title: Metrics(folder) for title, folder in folders.items()}
        self.command = f"%distrain compare {' '.join(folder.name for folder in folders.values())}"
        self._places: dict[Key, tuple[Metrics, Key]] = {}

    @classmethod
    def of(cls, compared: Comparison) -> OverlaidMetrics:
        return cls({title(run): run.folder for run in compared.runs})

    def read(self) -> tuple[Key, ...]:
        stale = tuple(
            Key(line_name(name, key.series), key.tag)
            for name, metrics in self._runs.items()
            for key in metrics.read()
        )
        self._places = {
            Key(line_name(name, key.series), key.tag): (metrics, key)
            for name, metrics in self._runs.items()
            for key in metrics.keys
        }
        return stale

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.tag for key in self._places))

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self._places)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for metrics in self._runs.values() for note in metrics.notes)

    @property
    def non_scalars(self) -> NonScalars:
        """Nothing: only scalars are laid over each other."""
        return NonScalars()

    def line(self, key: Key, points: int = 1_000) -> ChartLine:
        metrics, key_there = self._places[key]
        return metrics.line(key_there, points)

    def last(self) -> dict[str, float]:
        """Return no newest values: what is newest in one run is not what is newest in all."""
        return {}
