"""Runs in experiment trackers: a process of its own mirrors what their folders have."""

from distrain_nb.tracking.runs import begin_run, begin_study, begin_trial
from distrain_nb.tracking.starting import catch_up

__all__ = ["begin_run", "begin_study", "begin_trial", "catch_up"]
