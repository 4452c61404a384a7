"""Names of runs as clouds take them."""

from __future__ import annotations

import re
import secrets

# Names stand in labels, tags and names of jobs, of up to 63 characters in lower case; a dash and
# the eight digits that make a run's name its own come behind.
_LONGEST = 40


def short_name(name: str) -> str:
    """The name that a job was given, as labels, images and jobs may have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST].strip("-") or "run"


def run_name(name: str) -> str:
    """A name that no other run has."""
    return f"{short_name(name)}-{secrets.token_hex(4)}"
