"""Rows of runs as a DataFrame of pandas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from distrain_nb.run.pages.run_row import RunRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

# Beginnings of columns, as in `get_experiment_df` of google-cloud-aiplatform.
PREFIXES = PARAM, BEST, LAST = "param.", "metric.", "time_series_metric."


def frame(rows: Iterable[RunRow]) -> pd.DataFrame:
    """Return a table with a row for each run, by the run's number.

    `submitted` is in UTC, `duration` in seconds. Parameters and metrics have the columns of
    `get_experiment_df` of google-cloud-aiplatform. `param.lr` is a parameter of `--param`, or a
    hyperparameter written for TensorBoard. `metric.loss` is the best value of a metric, and
    `time_series_metric.loss` its newest.
    """
    import pandas as pd

    now = time.time()
    columns = ["name", "experiment", "state", "where", "layout", "submitted", "duration"]
    columns += ["best_metric", "best_value", "tags", "note"]
    cells = [{"run": row.summary.id, **_cells(row, now)} for row in rows]
    table: pd.DataFrame = pd.DataFrame(cells, columns=None if cells else ["run", *columns])
    by_number: pd.DataFrame = table.set_index("run")
    names = sorted(by_number.columns.map(str), key=_position)
    ordered: pd.DataFrame = by_number.reindex(columns=names)
    return ordered


def values_of(row: RunRow) -> dict[str, float | str]:
    """Return a run's parameters and metrics, by column."""
    return {
        **{f"{PARAM}{name}": value for name, value in row.params.items()},
        **{f"{BEST}{tag}": value for tag, value in row.bests.items()},
        **{f"{LAST}{tag}": value for tag, value in row.last.items()},
    }


def columns_of(rows: Iterable[RunRow]) -> list[str]:
    """Return the columns of all parameters and metrics of these runs, parameters first."""
    return sorted(dict.fromkeys(name for row in rows for name in values_of(row)), key=_position)


def _cells(row: RunRow, now: float) -> dict[str, object]:
    import pandas as pd

    return {
        "name": row.summary.name,
        "experiment": row.experiment,
        "state": row.summary.state,
        "where": row.summary.where,
        "layout": row.layout,
        "submitted": pd.Timestamp(row.summary.begin, unit="s", tz="UTC"),
        "duration": row.summary.elapsed(now),
        "best_metric": row.best.tag if row.best else "",
        "best_value": row.best.value if row.best else float("nan"),
        "tags": row.summary.annotation.tag_text,
        "note": row.summary.annotation.note,
        **values_of(row),
    }


def _position(column: str) -> int:
    """Return the position of a column's group: what every run has, parameters, metrics."""
    return next((n for n, prefix in enumerate(PREFIXES, 1) if column.startswith(prefix)), 0)
