"""`python -m distrain_nb.backends.remote FOLDER`: carry the run of that folder to its end.

To its service, or where the submission says so to a stand-in on this machine, started for it.
`--shared NUMBER` carries all runs whose folders come by the socket of that number.
"""

from __future__ import annotations

import socket
import sys
from functools import partial
from pathlib import Path

from distrain_nb.backends.remote import carrier_log
from distrain_nb.backends.remote.carrier import carry
from distrain_nb.backends.remote.sharing import SHARED, SharedCarrier
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
    if sys.argv[1] == SHARED:
        SharedCarrier(socket.socket(fileno=int(sys.argv[2]))).serve()
        sys.exit()
    carrier_log.start(Path(sys.argv[1]))
    main(Path(sys.argv[1]))
