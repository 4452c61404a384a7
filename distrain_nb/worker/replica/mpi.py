"""The command line of `mpirun`."""

from __future__ import annotations

import shlex
import socket
import sys
from typing import List, Sequence, Tuple

NCCL_DEBUG = "--NCCL_DEBUG="
# The hosts are those of the job, whatever this process itself runs under: within a job of Slurm's
# Open MPI finds the slots of its allocation taken, by us.
NO_SCHEDULER = "^slurm,tm,lsf,gridengine"


def mpirun(
    processes: int, hosts: Sequence[str] = (), options: Sequence[str] = (), interface: str = ""
) -> Tuple[str, ...]:
    """Open MPI's command for that many ranks, shared out evenly among the hosts in their order.

    Without hosts, or with one, all ranks are on this machine. `interface` is the network interface
    by which hosts reach each other; `options` are added as they are.
    """
    command = ["mpirun", "-n", str(processes), "--oversubscribe", "--bind-to", "none"]
    for name in ("ras", "plm"):
        if name not in options:  # Open MPI refuses two values
            command += ["--mca", name, NO_SCHEDULER]
    if len(hosts) > 1:
        command += _across(hosts, processes // len(hosts), interface)
    return (*command, *options)


def custom_options(text: str) -> List[str]:
    """Return options as SageMaker's containers take them: `--NCCL_DEBUG=INFO` is a variable there.

    Raises ValueError where quotes don't match.
    """
    words: List[str] = []
    for option in shlex.split(text):
        if option.startswith(NCCL_DEBUG):
            words += ["-x", "NCCL_DEBUG=" + option[len(NCCL_DEBUG) :]]
        else:
            words.append(option)
    return words


def _across(hosts: Sequence[str], slots: int, interface: str) -> List[str]:
    """Build the `mpirun` command across hosts. Ranks are numbered host by host; our own agent
    starts daemons: see `remote_start`."""
    agent = f"{sys.executable} -m distrain_nb.worker.replica.remote_start"
    # Where Open MPI doesn't know the first for its own, such as 127.0.0.3, it asks our agent for a
    # daemon here, where nobody waits for that.
    names = [socket.gethostname(), *hosts[1:]]
    command = ["--host", ",".join(f"{name}:{slots}" for name in names), "--map-by", "slot"]
    command += ["--leave-session-attached", "--mca", "plm_rsh_agent", agent]
    command += ["--mca", "plm_rsh_no_tree_spawn", "1"]
    if interface:
        for name in ("btl_tcp_if_include", "oob_tcp_if_include"):
            command += ["--mca", name, interface]
        command += ["-x", "NCCL_SOCKET_IFNAME=" + interface]
    return command
