"""Readers of the log."""
