"""Changes to how PyTorch makes and destroys process groups.

Groups of gloo that a program has destroyed stay in memory as long as their rank, or the process
that it spawned. PyTorch takes a group apart when its last reference goes, which a DDP module may
hold: in the thread that holds the interpreter's lock it joins the group's own thread, and that one
may be waiting for the lock to free a tensor (pytorch/pytorch#56297). A function whose model is its
own ended so, now and then. The process ends soon after, and frees all.

A rank that turns to rank 0 before that listens is refused, and PyTorch tries again only after half
a second or more. Ranks of one machine come so close to each other that a third of the runs of two
ranks, and nearly all of eight, began late. So a rank looks first whether anybody listens.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from typing import Any, List, Optional

from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.reduction import groups

_DISTRIBUTED = "torch.distributed.distributed_c10d"

# What else is wrong, PyTorch says better.
LISTENS_WITHIN_S = 60.0
_SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.002, 0.05

_held: List[Any] = []


def change() -> None:
    """Keep what is destroyed from now on, and turn to rank 0 when it listens."""
    on_import({_DISTRIBUTED: _change})


def reduce() -> None:
    """Have the reducers of this rank, where it has some, sum for the groups that are made."""
    if groups.addresses():
        on_import({_DISTRIBUTED: groups.install})


def _change(module: Any) -> None:
    destroy, init = module.destroy_process_group, module.init_process_group
    module._world  # noqa: B018  # before PyTorch 2 there is none, and all is left as it is

    @functools.wraps(destroy)
    def destroy_process_group(group: Any = None) -> None:
        pg_map = module._world.pg_map
        gloo = [pg for pg, (backend, *_) in pg_map.items() if "gloo" in str(backend)]
        _held.extend(gloo)
        destroy(group)
        groups.end(pg for pg in gloo if pg not in module._world.pg_map)

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
    """Return where rank 0 of this machine is to listen for this one, whose own number may be known
    from the variables alone (-1); None where it doesn't."""
    variables = os.environ
    first = variables.get("RANK", "0") == "0" if rank < 0 else rank == 0
    elsewhere = not variables.get("MASTER_ADDR", "").startswith(("127.", "localhost"))
    if first or elsewhere or variables.get("TORCHELASTIC_USE_AGENT_STORE"):
        return None
    port = variables.get("MASTER_PORT", "")
    return int(port) if port.isdigit() else None


def await_listener(port: int, seconds: float) -> None:
    """Wait until a process of this machine listens at that port, at most so long; not at all where
    the system doesn't tell."""
    begin = time.monotonic()
    while not _has_listener(port):
        waited = time.monotonic() - begin
        if waited > seconds:
            return
        time.sleep(min(_LONGEST_WAIT_S, max(_SHORTEST_WAIT_S, waited / 10)))


def _has_listener(port: int) -> bool:
    """Tell whether a process listens on a port; True where the system doesn't say."""
    try:
        lines = [line for table in _SOCKETS for line in table.read_text().splitlines()[1:]]
    except OSError:
        return True
    rows = (line.split() for line in lines)
    return any(row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port for row in rows)
