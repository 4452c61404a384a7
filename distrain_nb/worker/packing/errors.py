"""The errors of packing, in words for the user."""

from __future__ import annotations


class PackingRefused(Exception):
    """A source or target can't be read or written."""


class PackingFailed(Exception):
    """Samples can't be packed: what is read is wrong, or has changed meanwhile."""
