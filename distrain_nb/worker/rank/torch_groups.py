"""Changes to how PyTorch makes and destroys process groups.

Groups of gloo that a program has destroyed stay in memory to the end of the process. PyTorch ends a
group with its last reference, which a DDP module may hold. Then the thread that holds the
interpreter's lock joins the group's own thread. That thread may be waiting for the lock to free a
tensor (pytorch/pytorch#56297). A function whose model is its own ended so, now and then.

A rank waits until rank 0 listens. A rank that connects earlier is refused, and PyTorch tries again
only after half a second or more. A third of the runs of two ranks on one machine, and nearly all of
eight, began late.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from typing import Any, List, Optional

from distrain_nb.worker.facts import dry
from distrain_nb.worker.machine.sockets import has_listener
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.torch_store import DISTRIBUTED
from distrain_nb.worker.reduction import process_groups

# After that PyTorch connects, and reports what is wrong.
LISTENS_WITHIN_S = 60.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.002, 0.05

_held: List[Any] = []


def change_process_groups() -> None:
    """Keep destroyed groups from now on, and connect to rank 0 only when it listens."""
    on_import({DISTRIBUTED: _change})


def reduce() -> None:
    """Let the reducers of this rank, if it has some, sum for groups that are made."""
    if process_groups.addresses():
        on_import({DISTRIBUTED: process_groups.install})


def await_listener(port: int, seconds: float) -> None:
    """Wait until a process of this machine listens at a port, at most so many seconds.

    There is no wait if the system doesn't say who listens.
    """
    begin = time.monotonic()
    while not _has_listener(port):
        waited = time.monotonic() - begin
        if waited > seconds:
            return
        time.sleep(min(_LONGEST_WAIT_S, max(_SHORTEST_WAIT_S, waited / 10)))


def _change(module: Any) -> None:
    destroy, init = module.destroy_process_group, module.init_process_group
    module._world  # noqa: B018  # before PyTorch 2 there is none: the error leaves all as it is

    @functools.wraps(destroy)
    def destroy_process_group(group: Any = None) -> None:
        pg_map = module._world.pg_map
        gloo = [pg for pg, (backend, *_) in pg_map.items() if "gloo" in str(backend)]
        _held.extend(gloo)
        destroy(group)
        process_groups.end(pg for pg in gloo if pg not in module._world.pg_map)

    @functools.wraps(init)
    def init_process_group(*arguments: Any, **named: Any) -> None:
        by_variables = len(arguments) < 2 and named.get("init_method") in (None, "env://")
        by_mpi = "mpi" in (*arguments, named.get("backend"))
        if by_variables and not by_mpi and named.get("store") is None:
            port = _port_of_rank_0(named.get("rank", -1))
            if port is not None:
                await_listener(port, LISTENS_WITHIN_S)
        init(*arguments, **named)

    package = sys.modules.get("torch.distributed")
    for function in (destroy_process_group, init_process_group):
        setattr(module, function.__name__, function)
        if hasattr(package, function.__name__):  # it was imported before
            setattr(package, function.__name__, function)


def _port_of_rank_0(rank: int) -> Optional[int]:
    """Return the port on this machine at which rank 0 will listen; None if it won't.

    *rank* is -1 if only the variables have this rank's number.
    """
    variables = os.environ
    first = variables.get("RANK", "0") == "0" if rank < 0 else rank == 0
    elsewhere = not variables.get("MASTER_ADDR", "").startswith(("127.", "localhost"))
    alone = dry.VARIABLE in variables  # rank 0 has ended: there is no process to meet
    if first or elsewhere or alone or variables.get("TORCHELASTIC_USE_AGENT_STORE"):
        return None
    port = variables.get("MASTER_PORT", "")
    return int(port) if port.isdigit() else None


def _has_listener(port: int) -> bool:
    """Tell whether a process listens at a port; True if the system doesn't say."""
    try:
        return has_listener(port)
    except OSError:
        return True
