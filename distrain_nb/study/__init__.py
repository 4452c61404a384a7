"""Studies: many runs of one cell, of which each has other values of its parameters."""

from distrain_nb.study.following import attach
from distrain_nb.study.listing import find_study, studies
from distrain_nb.study.starting import prepare, tune
from distrain_nb.study.study import Study

__all__ = ["Study", "attach", "find_study", "prepare", "studies", "tune"]
