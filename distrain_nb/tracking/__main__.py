"""`python -m distrain_nb.tracking KIND`: mirror the runs that trackers of a kind are to have."""

from __future__ import annotations

import logging
import os
import signal
import sys
from functools import partial

from distrain_nb.backends.remote.lock import run_as_owner
from distrain_nb.config import home
from distrain_nb.tracking.kinds import Kind, kinds
from distrain_nb.tracking.request import pending
from distrain_nb.tracking.starting import OWNER_FILE
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.status import Owner

# MLflow's client would go on for minutes where nobody answers.
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
# On Vertex AI these name a run of the notebook's, which Google's SDK would go on with.
NOT_OURS = ("AIP_EXPERIMENT_NAME", "AIP_EXPERIMENT_RUN_NAME")


def main(kind: Kind) -> None:
    """Run the mirror; return at once if another process does so already."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.environ.update(SETTINGS)
    for name in NOT_OURS:
        os.environ.pop(name, None)
    run_as_owner(home() / kind.folder, partial(_serve, kind))


def _serve(kind: Kind) -> None:
    from distrain_nb.tracking.process import TrackingProcess

    path = home() / kind.folder / OWNER_FILE
    all_done = True
    while all_done:
        replace_file(path, fields.encode(Owner.of(os.getpid())))
        all_done = TrackingProcess(kind).run()
        path.unlink(missing_ok=True)
        if not pending(kind):  # else somebody has just come, and taken this process for alive
            return


if __name__ == "__main__":
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    main(kinds()[sys.argv[1]])
