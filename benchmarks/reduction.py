"""Adding up gradients by reducers, gloo's ring and Open MPI's algorithms, on shaped links.

`python benchmarks/reduction.py [--all] [--record]`, as root; the last line is one JSON object, and
`--record` keeps each cell in `reduction.json`, of which the charts are drawn, once it is measured.
Workers and reducers are nodes of `links.py`, each with a link of its own to one switch. Bytes are
those that the interface of the worker that sends most has counted. Algorithm bandwidth is a
gradient's size over the time of its exchange.

- `bytes_over_ring_8`: bytes that one of 8 workers sends to 8 reducers, over those in gloo's ring.
- `bandwidth_over_ring_8`: algorithm bandwidth of the same, for the largest gradient.
- `latency_growth_2_to_8`: time for 4 kB of 8 workers over that of 2, on links of 5 ms.
- `training_over_ring`: seconds of a transformer's steps by gloo's ring over those by reducers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import exchanges, transformer
from benchmarks.exchanges import Exchange
from benchmarks.links import Shape, loopback, switched
from benchmarks.machine import describe

TINY, SMALL, MIDDLE, LARGE = 4_000, 1_000_000, 25_000_000, 100_000_000
ROUNDS = {TINY: 25, SMALL: 3, MIDDLE: 2, LARGE: 1}
WORKERS = (2, 4, 8)
STEPS = 15
TRAINING = Shape(50, 0)  # two cores compute slowly for eight ranks, and the exchange is to be most
RING = "gloo"
TABLE = """\
Milliseconds, and in brackets what the worker that sends most has sent, in gradients.

| link | n | gradient | gloo | n/2 reducers | n reducers | Open MPI, recursive doubling | … ring | \
… Rabenseifner | gloo's time over that of n reducers |
|---|---|---|---|---|---|---|---|---|---|"""
RECORD = Path(__file__).with_name("reduction.json")


@dataclass(frozen=True)
class Cell:
    """Gradients of some sizes between workers on links of one shape, None for the loopback."""

    shape: Shape | None
    workers: int
    sizes: tuple[int, ...]
    mpi: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.shape or 'loopback'}, {self.workers} workers"


DEFAULT = (
    *(Cell(Shape(100, 0), workers, (MIDDLE,)) for workers in (2, 4)),
    Cell(Shape(100, 0), 8, (SMALL, MIDDLE, LARGE), tuple(exchanges.OPEN_MPI)),
    Cell(Shape(200, 0), 8, (MIDDLE,)),
    *(Cell(Shape(100, 5), workers, (TINY, SMALL), ("ring", "Rabenseifner")) for workers in WORKERS),
    *(Cell(None, workers, (SMALL, MIDDLE)) for workers in (2, 8)),
)
ALL = tuple(Cell(None, workers, (SMALL, MIDDLE, LARGE)) for workers in WORKERS) + tuple(
    Cell(Shape(mbit, delay), workers, (TINY, SMALL, MIDDLE, LARGE), tuple(exchanges.OPEN_MPI))
    for mbit, delay, workers in product((100, 200), (0, 5), WORKERS)
)

Found = dict[str, dict[int, Exchange]]


def exchanged(cell: Cell) -> Iterator[tuple[str, dict[int, Exchange]]]:
    """Each way's exchanges of a cell."""
    plan = (cell.sizes, [ROUNDS[size] for size in cell.sizes])
    count = 2 * cell.workers
    with switched(count, cell.shape) if cell.shape else loopback(count) as nodes:
        workers, others = nodes[: cell.workers], nodes[cell.workers :]
        yield RING, exchanges.gloo(workers, plan)
        for some in (cell.workers // 2, cell.workers):
            yield reducers(some), exchanges.reducers(workers, others[:some], plan)
        for algorithm in cell.mpi:
            yield open_mpi(algorithm), exchanges.open_mpi(workers, algorithm, plan)


def reducers(count: int) -> str:
    return "1 reducer" if count == 1 else f"{count} reducers"


def open_mpi(algorithm: str) -> str:
    return f"Open MPI, {algorithm}"


def show(cell: Cell, found: Found) -> None:
    """Rows of the table, one for each size."""
    ours = reducers(cell.workers)
    ways = [RING, reducers(cell.workers // 2), ours, *map(open_mpi, exchanges.OPEN_MPI)]
    for size in cell.sizes:
        rows = {way: sizes[size] for way, sizes in found.items()}
        words = (
            str(cell.shape or "loopback"),
            str(cell.workers),
            f"{size / 1e6:g} MB" if size >= SMALL else f"{size / 1e3:g} kB",
            *(took(rows[way], size if cell.shape else 0) if way in rows else "" for way in ways),
            f"{rows[RING].seconds / rows[ours].seconds:.2f}",
        )
        print(f"| {' | '.join(words)} |", flush=True)


def took(one: Exchange, size: int) -> str:
    """Milliseconds, and what was sent; no size where nodes share an interface."""
    time = f"{one.seconds * 1000:,.{1 if one.seconds < 0.1 else 0}f}"
    return f"{time} ({one.sent / size:.2f})" if size else time


def training(workers: int = 8) -> float:
    """Seconds of training by the ring over those by as many reducers; the losses are the same."""
    with switched(2 * workers, TRAINING) as nodes:
        ranks, others = nodes[:workers], nodes[workers:]
        ring = exchanges.torch_ranks(ranks, "", transformer.train, STEPS)
        with exchanges.reducing(others) as addresses:
            ours = exchanges.torch_ranks(ranks, addresses, transformer.train, STEPS)
    took = [max(seconds for seconds, _, _ in each) for each in (ring, ours)]
    curves = [[loss for _, losses, _ in each for loss in losses] for each in (ring, ours)]
    apart = max(abs(one - other) for one, other in zip(*curves, strict=True))
    if apart > 1e-3:
        raise ValueError(f"the losses are up to {apart} apart")
    print(
        f"\nA transformer with gradients of {ring[0][2] / 1e6:.1f} MB, {workers} workers, "
        f"{TRAINING}: "
        f"{took[0] / STEPS:.3f} s a step by the ring, "
        f"{took[1] / STEPS:.3f} s by reducers. Rank 0's "
        f"loss falls from {curves[0][0]:.2f} to {curves[0][STEPS - 1]:.2f} in both, and no loss of "
        f"any rank differs by more than {apart:.1g}"
    )
    return took[0] / took[1]


def record(cell: Cell, found: Found) -> None:
    """Keep what was measured, in place of what an earlier run measured of this cell."""
    link = {
        "mbit": cell.shape.mbit if cell.shape else None,
        "delay_ms": cell.shape.delay_ms if cell.shape else None,
        "workers": cell.workers,
    }
    others = [row for row in json.loads(RECORD.read_text()) if not link.items() <= row.items()]
    rows = others + [
        {
            **link,
            "by": way,
            "bytes": size,
            "sent": round(one.sent),
            "seconds": round(one.seconds, 6),
        }
        for way, sizes in found.items()
        for size, one in sizes.items()
    ]
    lines = ",\n".join(json.dumps(row) for row in rows)
    RECORD.write_text(f"[\n{lines}\n]\n")


def main(cells: tuple[Cell, ...], recording: bool) -> None:
    if os.geteuid():
        raise SystemExit("network namespaces need root")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    print(describe("torch", "mpi4py", "distrain-nb"))
    warm()
    print(f"\n{TABLE}")
    found: dict[Cell, Found] = {}
    for cell in cells:
        found[cell] = dict(exchanged(cell))
        show(cell, found[cell])
        if recording:
            record(cell, found[cell])
    ratio = training()
    print(json.dumps({**figures(found), "training_over_ring": round(ratio, 3)}))


def warm() -> None:
    """Import what ranks need: they are forks of this process."""
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).step()


def figures(found: dict[Cell, Found]) -> dict[str, float]:
    """The three ratios of exchanges."""
    fast, late = Shape(100, 0), Shape(100, 5)
    at = {(cell.shape, cell.workers): ways for cell, ways in found.items()}
    ways = at[fast, 8]
    ring, ours = ways[RING][LARGE], ways[reducers(8)][LARGE]
    tiny = {n: at[late, n][reducers(n)][TINY].seconds for n in (2, 8)}
    return {
        "bytes_over_ring_8": round(ours.sent / ring.sent, 3),
        "bandwidth_over_ring_8": round(ring.seconds / ours.seconds, 3),
        "latency_growth_2_to_8": round(tiny[8] / tiny[2], 3),
    }


if __name__ == "__main__":
    main(ALL if "--all" in sys.argv[1:] else DEFAULT, "--record" in sys.argv[1:])
