"""A run as a row of a list: where it stands, its parameters and its best metric."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.run.metrics import finite
from distrain_nb.run.pages.best_metric import BestMetric
from distrain_nb.run.run import Run
from distrain_nb.run.summary import RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from distrain_nb.run.pages.best_metric import MetricValues
    from distrain_nb.types import Json

# Options of a layout that the columns of place and size show.
_SHOWN_ELSEWHERE = re.compile(r"--(?:on|ranks-per-replica) \S+ ?")


@dataclass(frozen=True)
class RunRow:
    """One run of a list.

    `last` has the newest value of each metric, and `bests` the best, by tag. `params` has the
    values of `--param` by name, and the hyperparameters that the program wrote for TensorBoard.
    `study` is the key of a trial's study. `alarm` says why the run makes no progress.
    """

    summary: RunSummary
    layout: str
    experiment: str
    last: dict[str, float]
    best: BestMetric | None
    bests: Mapping[str, float] = field(default_factory=dict)
    params: Mapping[str, float | str] = field(default_factory=dict)
    study: str = ""
    alarm: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the row of a page's table, as JSON values; times in seconds since the epoch."""
        run = self.summary
        return finite.without_nan(
            {
                "id": run.id,
                "name": run.name,
                "state": run.state,
                "final": run.final,
                "place": run.where,
                "size": run.size,
                "machines": self.machines,
                "experiment": self.experiment,
                "study": self.study,
                "best": asdict(self.best) if self.best else None,
                "begin": run.begin,
                "end": run.end,
                "progress": asdict(run.progress) if run.progress else None,
                "cause": run.cause,
                "alarm": self.alarm,
                "cost": run.cost,
                "cost_note": run.cost_note,
                "annotation": run.annotation.as_json(),
            }
        )

    @property
    def machines(self) -> str:
        """The layout without the options that place and size repeat."""
        return _SHOWN_ELSEWHERE.sub("", self.layout).strip()

    @property
    def final(self) -> bool:
        return self.summary.final


def row_of(run: Run, summary: RunSummary, values: MetricValues) -> RunRow:
    """Return the row of a run with this state and these metrics."""
    params = {**_hyperparameters(values), **dict(parameters(run.options))}
    bests = values.bests or {}
    return RunRow(
        summary, run.line, run.experiment, values.last, values.best, bests, params, run.study,
        "" if summary.final else summary.hang,
    )  # fmt: skip


def parameters(options: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, float | str]]:
    """Yield names and values of a run's `--param`. A text that reads as a number becomes one."""
    for text in options.get("param", ()):
        name, _, value = text.partition("=")
        yield name, number(value)


def number(text: str) -> float | str:
    """Return the number that a text stands for, or the text if it stands for none."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _hyperparameters(metrics: MetricValues) -> dict[str, float | str]:
    """Return the hyperparameters that the program wrote for TensorBoard."""
    items = (metrics.hyperparameters or {}).items()
    return {name: value for name, value in items if isinstance(value, int | float | str)}
