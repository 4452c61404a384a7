"""Slurm's commands, what they print, and what they say where they refuse."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from distrain_nb.backends.remote.service import Unanswered
from distrain_nb.errors import DistrainError
from distrain_nb.places.slurm.squeue import COMMAND, WAITING, QueuedJob, read
from distrain_nb.secrets import is_secret

PATIENCE_S = 60.0

# Variables that say where the cluster is; all others of Slurm's are of the job that the notebook
# itself runs in, and would have their say in jobs that are submitted there.
TOKEN = "SLURM_JWT"  # by which commands log in, where it is set
_CLUSTER = frozenset(["SLURM_CONF", "SLURM_CLUSTERS", TOKEN, "SLURM_CONF_SERVER"])
_OF_SLURM = re.compile(r"(SLURM|SQUEUE|SINFO|SRUN|SCONTROL|SACCT)_")
AWAY = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (refused|timed out)"
    r"|Zero Bytes were transmitted|communication (connection|shutdown) failure",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"^(?:[a-z]+: )?(?:error: |fatal: )?", re.MULTILINE)

# Partition, default (with *), state, longest time, nodes of a job, number of these nodes, their
# state, CPUs, memory in MB, GRES, features.
NODES = "%R|%P|%a|%l|%s|%D|%T|%c|%m|%G|%f"
_BRIEF_S, _ACCOUNTS_S = 5.0, 10.0


class ControllerUnreachable(Unanswered):
    """The controller doesn't answer."""


class UnverifiedServer(ControllerUnreachable):
    """The answering server can't be verified."""


class Refused(DistrainError):
    """A command of Slurm's failed, in its own words."""


def run(*command: str, patience: float = PATIENCE_S, passed: Sequence[int] = ()) -> str:
    """Return what a command of Slurm's prints. The command gets the open files `passed`.

    Raises ControllerUnreachable if the controller doesn't answer in time, and Refused for any other
    error of the command.
    """
    try:
        done = subprocess.run(
            command,
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            pass_fds=passed,
        )
    except FileNotFoundError:
        raise Refused(
            f"{command[0]} is not on this machine's PATH: start the notebook where Slurm's "
            "commands are, such as on a login node"
        ) from None
    except subprocess.TimeoutExpired:
        raise ControllerUnreachable(f"{command[0]} got no answer within {patience:g} s") from None
    output, complaint = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    if done.returncode == 0:
        return output
    words = error_text(complaint or output)
    raise (ControllerUnreachable if AWAY.search(words) else Refused)(words)


def error_text(complaint: str) -> str:
    """Return what a command said, without the command's name before each line."""
    lines = [_PREFIX.sub("", line).strip() for line in complaint.splitlines()]
    return "; ".join(dict.fromkeys(filter(None, lines))) or "it gave no reason"


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command gets, and jobs after it but for the token: no secrets,
    since the controller keeps a job's variables in a file."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _CLUSTER or not _OF_SLURM.match(name))
        and (name in _CLUSTER or not is_secret(name, value))
    }


class Commands:
    """A cluster whose commands are on this machine's PATH."""

    name, version = "sbatch", 0

    @property
    def cluster(self) -> str:
        return "\n".join(os.environ.get(name, "") for name in ("SLURM_CONF", "SLURM_CLUSTERS"))

    def submit(self, script: Path, options: Mapping[str, str]) -> str:
        """Submit a script, which has its options, under the name that `options` have."""
        name = options["job-name"]
        command = ["sbatch", "--parsable", f"--job-name={name}"]
        # A job gets all variables that sbatch has, but with a file only those in the file.
        variables = {**environment(os.environ), "SLURM_JOB_NAME": name}
        if not variables.pop(TOKEN, ""):
            printed = run(*command, str(script))
        else:
            with tempfile.TemporaryFile() as file:
                file.writelines(
                    os.fsencode(f"{variable}={variables[variable]}\0") for variable in variables
                )
                file.seek(0)
                number = file.fileno()
                printed = run(*command, f"--export-file={number}", str(script), passed=[number])
        return printed.strip().partition(";")[0]

    def jobs(self) -> tuple[QueuedJob, ...]:
        return read(run(*COMMAND))

    def waiting(self) -> str:
        return run(*WAITING)

    def cancel(self, job: str) -> None:
        run("scancel", job)

    def printed(self) -> tuple[str, str]:
        sinfo = run("sinfo", "-h", "-e", "-o", NODES, patience=_BRIEF_S)
        return sinfo, run("scontrol", "show", "partition", "-o", patience=_BRIEF_S)

    def accounted(self, job: str) -> str:
        return run("sacct", "-n", "-X", "-P", "-j", job, "-o", "State", patience=_ACCOUNTS_S)
