"""Metrics as event files: what a program logs, and what its ranks use of the machine."""
