"""Slurm clusters."""
