"""Names of jobs that run elsewhere, made of the run's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distrain_nb.backends.job import AnyJob


# Names stand in labels, tags and names of jobs, of up to 63 characters in lower case; a dash and
# the eight digits that make a run's name its own come behind.
_LONGEST = 40


def short_name(name: str) -> str:
    """Return the name that a job was given, as labels, images and jobs may have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST].strip("-") or "run"


def run_name(job: AnyJob) -> str:
    """Return a name that no other job's run has."""
    return f"{short_name(job.name)}-{job.nonce}"
