"""Runs that Python code asked for, as a list with a DataFrame and charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.run.charts.figures import figure_of
from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.overlay import overlaid
from distrain_nb.run.pages.run_frame import frame
from distrain_nb.run.run import Run

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class RunList(list[Run]):
    """A list of runs. `frame` is the same as a DataFrame."""

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each run, by the run's number; see `run_frame.frame`."""
        return frame(Listing().read(self))

    def figure(self, *metrics: str) -> go.Figure:
        """Return charts of these metrics, or of all, as a figure of plotly.

        Each run has a line, as in `%distrain compare`. Raises OptionError for a metric that no run
        has, and DistrainError if plotly is not installed.
        """
        return figure_of(overlaid(self), metrics, "runs(…)")
