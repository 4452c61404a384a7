"""`python -m distrain_nb.backends.remote FOLDER`: carry the run of that folder to its end.

To its service, or where the submission says so to a stand-in on this machine, started for it.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from distrain_nb.backends.remote import carrier_log
from distrain_nb.backends.remote.carrier import carry
from distrain_nb.backends.remote.submission import Submission


def main(folder: Path) -> None:
    """Submit the job of a run's folder and follow it to its end."""
    try:
        submission = Submission.read(folder)
    except Exception:
        return carry(folder)  # which reads it too, and says in the run what is wrong
    if submission.rehearse is None:
        return carry(folder)
    from distrain_nb.backends.remote.rehearsed import rehearse

    return rehearse(folder, submission, partial(carry, folder))


if __name__ == "__main__":
    carrier_log.start(Path(sys.argv[1]))
    main(Path(sys.argv[1]))
