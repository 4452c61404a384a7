"""Views of runs: the monitor below a cell, the table of runs, comparisons, the form."""
