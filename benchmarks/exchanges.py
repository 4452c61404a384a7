"""Ways to add up gradients between nodes, and what an exchange takes in each: time, bytes sent."""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.links import Node, inside, results, sent_bytes

# Ranks begin an exchange at one moment of the machine's clock, later than the message says it.
_SOON_S = 0.05
_PORT = 29_500

# Numbers that Open MPI's "tuned" component gives its algorithms.
OPEN_MPI = {"recursive doubling": 3, "ring": 4, "Rabenseifner": 6}


Plan = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class Exchange:
    """An exchange of one gradient: median seconds until the last rank has the sum, and the bytes
    that the rank that sends most sends."""

    seconds: float
    sent: float


def measured(
    empty: Callable[[int], Any],
    all_reduce: Callable[[Any], Any],
    barrier: Callable[[], Any],
    broadcast: Callable[[float], float],
    place: tuple[int, int],
    plan: Plan,
) -> list[dict[str, Any]]:
    """What a rank sees: for each size seconds of each round, and bytes sent in a round.

    `plan` has the sizes in bytes and how often each is exchanged; before all comes one exchange of
    the first, which connects. `place` is rank and size of the world. Raises ValueError if a sum is
    wrong.
    """
    rank, world = place
    found: list[dict[str, Any]] = []
    sizes, rounds = plan
    for size, count in zip((sizes[0], *sizes), (1, *rounds), strict=True):
        gradient = empty(size)
        times = []
        barrier()
        before = sent_bytes()
        for _ in range(count):
            gradient[:] = rank + 1
            begin = broadcast(time.monotonic() + _SOON_S)
            time.sleep(max(0.0, begin - time.monotonic()))
            all_reduce(gradient)
            times.append(time.monotonic() - begin)
            total = world * (world + 1) / 2
            if float(gradient.min()) != total or float(gradient.max()) != total:
                raise ValueError(f"the sum is not {total}")
        barrier()
        found.append({"size": size, "times": times, "sent": (sent_bytes() - before) / count})
    return found[1:]


def gloo(nodes: Sequence[Node], plan: Plan) -> dict[int, Exchange]:
    """gloo's ring."""
    return _together(torch_ranks(nodes, "", _exchanging, plan))


def reducers(nodes: Sequence[Node], others: Sequence[Node], plan: Plan) -> dict[int, Exchange]:
    """Our reducers on the other nodes."""
    with reducing(others) as addresses:
        return _together(torch_ranks(nodes, addresses, _exchanging, plan))


@contextmanager
def reducing(nodes: Sequence[Node]) -> Iterator[str]:
    """A reducer on each node, and what ranks are told of them."""
    from distrain_nb.worker.reduction.reducer import serve

    addresses = [f"{node.address}:{_PORT + 1 + n}" for n, node in enumerate(nodes)]
    started = [
        inside(node, serve, address, f"reducer {n}")
        for n, (node, address) in enumerate(zip(nodes, addresses, strict=True))
    ]
    try:
        yield ",".join(addresses)
    finally:
        for each in started:
            each.stop()


def torch_ranks(
    nodes: Sequence[Node], addresses: str, function: Callable[..., Any], *given: Any
) -> list[Any]:
    """What a function returns on the ranks of a process group of gloo, with reducers or without."""
    where = f"tcp://{nodes[0].address}:{_PORT}"
    ranks = [
        inside(node, _meeting, (where, rank, len(nodes)), (node.device, addresses), function, given)
        for rank, node in enumerate(nodes)
    ]
    return results(ranks)


def _meeting(
    place: tuple[str, int, int],
    network: tuple[str, str],
    function: Callable[..., Any],
    given: Sequence[Any],
) -> Any:
    """Meet the others by the link that is measured, and run a function."""
    import torch
    import torch.distributed as dist

    from distrain_nb.worker.reduction.process_groups import install

    os.environ["GLOO_SOCKET_IFNAME"], os.environ["DISTRAIN_REDUCERS"] = network
    torch.set_num_threads(1)
    install()
    where, rank, world = place
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=world)
    return function(*given)


def _exchanging(plan: Plan) -> list[dict[str, Any]]:
    """A rank that exchanges by `torch.distributed`."""
    import torch
    import torch.distributed as dist

    begin = torch.zeros(1, dtype=torch.float64)

    def broadcast(value: float) -> float:
        begin[0] = value
        dist.broadcast(begin, 0)
        return float(begin[0])

    return measured(
        lambda size: torch.empty(size // 4), dist.all_reduce, dist.barrier, broadcast,
        (dist.get_rank(), dist.get_world_size()), plan,
    )  # fmt: skip


def open_mpi(nodes: Sequence[Node], algorithm: str, plan: Plan) -> dict[int, Exchange]:
    """Open MPI's all-reduce by one of its algorithms, a daemon and a rank on each node."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder, "agent")
        agent.write_text(_agent(nodes))
        agent.chmod(0o755)
        rank = Path(__file__).with_name("mpi_exchange.py")
        numbers = [",".join(map(str, each)) for each in plan]
        command = [
            *("mpirun", "--allow-run-as-root", "-np", str(len(nodes)), "--map-by", "node"),
            *("--host", ",".join(node.address for node in nodes), "--bind-to", "none"),
            *("--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self"),
            *("--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", "eth0"),
            *("--mca", "oob_tcp_if_include", "eth0", "--mca", "mpi_yield_when_idle", "1"),
            *("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca"),
            *("coll_tuned_allreduce_algorithm", str(OPEN_MPI[algorithm])),
            *(sys.executable, str(rank), *numbers),
        ]
        # mpirun has a place of its own on the first node, whose rank a daemon starts as elsewhere.
        ran = subprocess.run(
            nodes[0].command(*_named("mpirun", command)),
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
    lines = [line for line in ran.stdout.splitlines() if line.startswith("FOUND ")]
    if not lines:
        raise RuntimeError(f"mpirun failed: {ran.stdout}{ran.stderr}")
    return _together(json.loads(lines[0].removeprefix("FOUND ")))


def _agent(nodes: Sequence[Node]) -> str:
    """What mpirun calls in ssh's place, with a host and a command."""
    cases = "\n".join(
        f'{node.address}) exec {shlex.join(node.command(*_named(f"node{n}", [])))} "$*" ;;'
        for n, node in enumerate(nodes)
    )
    return f'#!/bin/sh\nhost=$1; shift\ncase "$host" in\n{cases}\nesac\n'


def _named(name: str, command: Sequence[str]) -> list[str]:
    """A command under a host name of its own, or a shell that takes one."""
    words = shlex.join(command) or '"$1"'
    shell = f"hostname {name}; exec {words}" if command else f'hostname {name}; eval "$1"'
    return ["unshare", "--uts", "sh", "-c", shell, "sh"]


def _together(ranks: Sequence[Sequence[dict[str, Any]]]) -> dict[int, Exchange]:
    """One exchange for each size, of what its ranks saw."""
    found = {}
    for rows in zip(*ranks, strict=True):
        rounds = zip(*(row["times"] for row in rows), strict=True)
        seconds = statistics.median(max(times) for times in rounds)
        found[int(rows[0]["size"])] = Exchange(seconds, max(row["sent"] for row in rows))
    return found
