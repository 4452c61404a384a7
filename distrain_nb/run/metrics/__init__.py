"""Readers of event files."""
