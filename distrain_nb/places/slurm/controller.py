"""How the controller of a cluster is asked: by Slurm's commands, or by slurmrestd."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from distrain_nb.config import Config
from distrain_nb.errors import OptionError, shown
from distrain_nb.places.slurm.commands import Commands
from distrain_nb.places.slurm.squeue import QueuedJob


class Controller(Protocol):
    """The questions to the controller of a cluster.

    Each method raises ControllerUnreachable if nobody answers, and Refused in the controller's
    words.
    """

    @property
    def name(self) -> str:
        """What takes the jobs."""

    @property
    def version(self) -> int:
        """The version of slurmrestd's API; 0 for commands."""

    @property
    def cluster(self) -> str:
        """What tells the cluster from others."""

    def submit(self, script: Path, options: Mapping[str, str]) -> str:
        """Submit a script with options of sbatch, by name; return the job's number."""

    def jobs(self) -> tuple[QueuedJob, ...]:
        """Return this user's jobs, those that have ended too while the controller knows them."""

    def waiting(self) -> str:
        """Return a line ID|PARTITION for each job that waits, everybody's, in their order."""

    def cancel(self, job: str) -> None: ...

    def printed(self) -> tuple[str, str]:
        """Return nodes and partitions, as `sinfo` and `scontrol` print them."""

    def accounted(self, job: str) -> str:
        """Return the state that the accounting has of a job, as `sacct` prints it."""


URL, TOKEN = "slurm_url", "slurm_token"  # settings


@lru_cache(maxsize=4)
def controller(url: str, token_file: str) -> Controller:
    """Return the controller behind the slurmrestd at `url`; with an empty one, that of Slurm's
    commands."""
    url = read_url(url)
    if not url:
        return Commands()
    from distrain_nb.places.slurm.rest import Rest

    return Rest(url, token_file)


def read_url(text: str) -> str:
    """Return the address of a slurmrestd; empty for an empty text. Raises OptionError."""
    try:
        address = urlsplit(text)
        right = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError:
        right = False
    if text and (not right or "@" in text or address.query or address.fragment):
        raise OptionError(f"invalid {URL} {shown(text)}: expected such as http://HOST:6820")
    return text.rstrip("/")


def is_unencrypted(url: str) -> bool:
    """Return whether the token for that server crosses a network in plain text."""
    address = urlsplit(url)
    return address.scheme == "http" and address.hostname not in ("localhost", "127.0.0.1", "::1")


def slurmrestd_settings() -> tuple[str, str]:
    """Return the settings of slurmrestd: its URL and the file of the token."""
    settings = Config.load().of_backends
    return settings.get(URL, ""), settings.get(TOKEN, "")
