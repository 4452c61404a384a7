"""What users see of runs: the monitor below a cell, and the table of runs."""

from distrain_nb.ui.monitor import Monitor
from distrain_nb.ui.table import RunsTable, runs_table

__all__ = ["Monitor", "RunsTable", "runs_table"]
