"""Queries to the operating system and its devices."""
