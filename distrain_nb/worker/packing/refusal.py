"""Why nothing can be packed, in words for whoever asked."""


class PackingRefused(Exception):
    """What was named can't be read or written so."""


class PackingFailed(Exception):
    """Samples can't be packed: what is read is wrong, or has changed meanwhile."""
