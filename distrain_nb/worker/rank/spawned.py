"""The main module of processes that a program spawns."""

from distrain_nb.worker.rank.child import become, program_folder

become(program_folder(), globals())
