"""Changes to how PyTorch makes and destroys process groups.

Groups of gloo that a program has destroyed stay in memory as long as their rank, or the process
that it spawned. PyTorch takes a group apart when its last reference goes, which a DDP module may
hold: in the thread that holds the interpreter's lock it joins the group's own thread, and that one
may be waiting for the lock to free a tensor (pytorch/pytorch#56297). A function whose model is its
own ended so, now and then. The process ends soon after, and frees all.

A rank that connects before rank 0's port is open is refused, and PyTorch tries again only after
half a second or more. A third of the runs of two ranks on one machine, and nearly all of eight,
began late. So a rank waits for the port first.

Under torchrun its agent serves the store at `MASTER_ADDR:MASTER_PORT`, and every rank is a client:
libraries such as torchft open one themselves. Here rank 0 serves it when it first opens a client.
The server may have several owners in its process: a process group of rank 0 takes the same one.

How `jax.distributed.initialize()` without arguments finds the world of its rank.

JAX reads no variables for that but the coordinator's address. For the rest it asks the first of its
`ClusterEnv` classes that knows where it is, and takes in each class that is defined: so it has been
from JAX 0.4 to 0.10. Ours goes by the variables that ranks have, and before all others, as
`mpirun`'s does not know which GPUs are whose. Machines with TPUs tell JAX themselves.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from typing import Any, List, Optional, Tuple

from distrain_nb.worker.facts import dry
from distrain_nb.worker.machine.gpus import Gpus, shares
from distrain_nb.worker.machine.sockets import has_listener
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.reduction import group as groups

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
DEVICES = "JAX_LOCAL_DEVICE_IDS"


def change_jax() -> None:
    """Tell JAX of this rank's world when the program imports it."""
    on_import({"jax._src.clusters": _add})


def _add(module: Any) -> None:
    types: List[Any] = module.ClusterEnv._cluster_types

    class DistrainCluster(module.ClusterEnv):  # type: ignore[misc]
        """The ranks of this run."""

        name = "distrain"

        @classmethod
        def is_env_present(cls) -> bool:
            return all(os.environ.get(name) for name in _VARIABLES) and not _has_tpu()

        @classmethod
        def get_coordinator_address(cls, *_: Any, **__: Any) -> str:
            port = os.environ.get("JAX_COORDINATOR_PORT") or os.environ["MASTER_PORT"]
            return os.environ["MASTER_ADDR"] + ":" + port

        @classmethod
        def get_process_count(cls) -> int:
            return int(os.environ["WORLD_SIZE"])

        @classmethod
        def get_process_id(cls) -> int:
            return int(os.environ["RANK"])

        @classmethod
        def get_local_process_id(cls) -> Optional[int]:
            """Return the index of this process's GPU; None for the only process of a machine, which
            has all its devices."""
            several = int(os.environ["LOCAL_WORLD_SIZE"]) > 1
            return int(os.environ["LOCAL_RANK"]) if several else None

    types.remove(DistrainCluster)  # where it put itself when it was defined
    types.insert(0, DistrainCluster)
    _share_gpus()


def _has_tpu() -> bool:
    try:
        from jax._src.cloud_tpu_init import running_in_cloud_tpu_vm
    except ImportError:
        return False
    return bool(running_in_cloud_tpu_vm)


def _share_gpus() -> None:
    """Give each rank of a machine its share of the GPUs, where JAX would give it the one of its
    number: they may be more, or fewer."""
    ranks, rank = (int(os.environ.get(name, "1")) for name in ("LOCAL_WORLD_SIZE", "LOCAL_RANK"))
    gpus = Gpus.open() if ranks > 1 and DEVICES not in os.environ else None
    visible = gpus.visible(os.environ) if gpus else 0
    if visible not in (0, ranks):
        numbers = [str(number) for number in range(visible)]
        os.environ[DEVICES] = shares(numbers, ranks)[rank]


_DISTRIBUTED = "torch.distributed.distributed_c10d"

# What else is wrong, PyTorch says better.
LISTENS_WITHIN_S = 60.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.002, 0.05

_CLASSES = "torch._C._distributed_c10d"  # no module that is imported: `torch` makes it
_IS_MASTER = 3  # its place among the arguments of `TCPStore`

_held: List[Any] = []
_served: List[Any] = []  # for as long as this process lives


def change_process_groups() -> None:
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
    alone = dry.VARIABLE in variables  # rank 0 has ended, and nobody is to be met
    if first or elsewhere or alone or variables.get("TORCHELASTIC_USE_AGENT_STORE"):
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
        return has_listener(port)
    except OSError:
        return True


def serve_store() -> None:
    """Have rank 0 serve the store when it first opens a client; do nothing on other ranks."""
    if os.environ.get("RANK") == "0" and "MASTER_PORT" in os.environ:
        on_import({_DISTRIBUTED: _change_store})


def _change_store(_: Any) -> None:
    store = sys.modules[_CLASSES].TCPStore
    init = store.__init__

    @functools.wraps(init)
    def begin(self: Any, *arguments: Any, **named: Any) -> None:
        is_master = named.get("is_master", arguments[_IS_MASTER : _IS_MASTER + 1])
        if is_master in (False, (), (False,)) and not _served and _is_ours(*arguments, **named):
            _served.append(None)  # whatever comes of it, it is tried once
            host, port = _address()
            try:
                _served.append(
                    store(host, port, is_master=True, wait_for_workers=False, multi_tenant=True)
                )
            except RuntimeError:  # the program serves it, in another process
                pass
        init(self, *arguments, **named)

    store.__init__ = begin


def _is_ours(*arguments: Any, **named: Any) -> bool:
    asked = dict(zip(("host_name", "port"), arguments))
    asked.update(named)
    return (asked.get("host_name"), asked.get("port")) == _address()


def _address() -> Tuple[str, int]:
    port = os.environ.get("MASTER_PORT", "")
    return os.environ.get("MASTER_ADDR", ""), int(port) if port.isdigit() else 0
