"""The variables by which rank 0 elsewhere continues its run in MLflow."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from distrain_nb.backends.job import Job, named
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.tracked import RUN_VARIABLE, TRACKED_VARIABLE, URI_VARIABLE, Tracked

if TYPE_CHECKING:
    from distrain_nb.backends.remote.options import RemoteOptions

# What only the moment of submission can tell: the tracker's run.
MLFLOW_RUN = "${MLFLOW_RUN}"

_LONGEST = 512  # what SageMaker takes as a variable's value


def variables(job: Job[RemoteOptions]) -> dict[str, str]:
    """Return the variable with MLflow's address, if ranks may reach it; none if the user's own
    variables configure MLflow."""
    uri = job.config.mlflow or job.environ.get(URI_VARIABLE, "")
    names = {name for name, _ in named(job.options.env)}
    passed_on = may_be_reached(uri) and not names & {URI_VARIABLE, RUN_VARIABLE}
    return {TRACKED_VARIABLE: MLFLOW_RUN} if passed_on else {}


def mlflow_variable(folder: Path, *, study: bool) -> str:
    """Return the value that replaces `MLFLOW_RUN` for a folder's run, or for all trials of its
    study: JSON, without a run where the tracker has none yet."""
    tracked = nothing = Tracked("")
    with suppress(OSError, fields.Damaged):
        tracked = Tracked.read(folder) or nothing
    if study:
        tracked = replace(tracked, run="", parent=tracked.run)
    text = tracked.for_ranks
    return text if len(text) <= _LONGEST else nothing.for_ranks  # services take no empty value


def may_be_reached(uri: str) -> bool:
    """Return whether machines other than this one may reach a tracker: a server that isn't on this
    machine, or a tracking server of SageMaker. A private address may be one of their network."""
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme == "arn":
        return True
    if parts.scheme not in ("http", "https") or not host:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")
    return not (address.is_loopback or address.is_unspecified or address.is_link_local)
