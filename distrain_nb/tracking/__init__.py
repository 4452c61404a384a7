"""Runs in experiment trackers: a process of its own mirrors what their folders have."""

from distrain_nb.tracking.request import catch_up
from distrain_nb.tracking.runs import begin_run, begin_study, begin_trial

__all__ = ["begin_run", "begin_study", "begin_trial", "catch_up"]
