"""What a rank that runs alone has come to (`--as-rank`), in sentences."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.record import DRY, Fact, Facts, of_kind

VARIABLE = "DISTRAIN_DRY_RANK"

# How much of its bytes a rank sends by a ring, with n ranks: so often the share (n - 1) / n.
_RINGS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
_GIGA, _BITS = 1e9, 8


def seconds(
    kind: str, ranks: Sequence[int], size: int, per_replica: int, gbps: Optional[float]
) -> Optional[float]:
    """Return how long an exchange takes by the network of a machine; None where it needs none, or
    the network isn't known. Groups that use the same machine at once share its network."""
    members: Dict[int, int] = {}
    for rank in ranks:
        members[rank // per_replica] = members.get(rank // per_replica, 0) + 1
    if not gbps or len(members) < 2:
        return None
    sharing = per_replica / max(members.values())
    sent = _RINGS[kind] * (len(ranks) - 1) / len(ranks) if kind in _RINGS else 1.0
    return sent * size * sharing * _BITS / (gbps * _GIGA)


def lines(fact: Fact) -> Iterator[str]:
    """Yield the report about a rank for its log."""
    steps = f"{fact['steps']} step{'' if fact['steps'] == 1 else 's'}"
    came = "failed after" if fact["failed"] else "came through"
    yield f"rank {fact['of']} of {fact['world']:,} {came} {steps}, alone"
    yield f"memory at its peak, in step {fact['peak_step']}: {_memory(fact)}"
    yield f"its place: {_place(fact)}"
    if fact["shards"]["shared"]:
        shards = fact["shards"]
        yield (
            f"shards: {shards['shared']} of {shards['parameters']} parameters; the largest has"
            f" {_shape(shards['here'])} of {_shape(shards['whole'])} here"
        )
    if fact["data"]:
        yield f"samples: {_samples(fact['data'])}"
    if fact["exchanges"]:
        yield f"exchanged in a step: {'; '.join(map(_exchange, fact['exchanges']))}"


def verdict(tried: Sequence[int], world: int, steps: int) -> str:
    """Return what all ranks that were tried have come to."""
    step = f"{steps} step{'' if steps == 1 else 's'}"
    return f"{deviations.named(tried)} of {world:,} came through {step}, each alone"


def memory_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield the ranks that would need more memory than their device has."""
    larger: List[Fact] = [
        fact
        for noted in facts.values()
        for fact in of_kind(noted, DRY)
        if fact["device_bytes"] and sum(fact["memory"].values()) > fact["device_bytes"]
    ]
    if larger:
        largest = max(larger, key=lambda fact: sum(fact["memory"].values()))
        ranks = tuple(fact["of"] for fact in larger)
        yield Deviation(deviations.TOO_LARGE, ranks, "", {"memory": _memory(largest)})


def _memory(fact: Fact) -> str:
    kinds: Mapping[str, int] = fact["memory"]
    parts = ", ".join(f"{kind} {amount(size)}" for kind, size in kinds.items() if size)
    of = ""
    if fact["device_bytes"]:
        of = f" of the {amount(fact['device_bytes'])} of {fact['device']}"
    return f"{amount(sum(kinds.values()))}{of}" + (f" ({parts})" if parts else "")


def _place(fact: Fact) -> str:
    mesh = fact["mesh"]
    at = f"replica {fact['replica']}, local rank {fact['local']}"
    if not mesh:
        return at
    shape = " × ".join(f"{name} {size}" for name, (_, size) in mesh.items())
    here = ", ".join(f"{name} {index}" for name, (index, _) in mesh.items())
    return f"{at}; in the mesh {shape}: {here}"


def _samples(data: Mapping[str, Any]) -> str:
    count = "" if data["drawn"] is None else f"{data['drawn']:,} "
    size = "" if data["size"] is None else f"of {data['size']:,} "
    first = f", first {', '.join(map(str, data['indices']))}" if data["indices"] else ""
    return f"{count}{size}in an epoch{first} ({data['sampler']})"


def _exchange(exchange: Mapping[str, Any]) -> str:
    text = f"{exchange['kind']} {amount(exchange['bytes'])} among {exchange['ranks']:,} ranks"
    if exchange["machines"] < 2:
        return f"{text} of one machine"
    if exchange["seconds"] is None:
        return f"{text} of {exchange['machines']:,} machines"
    return f"{text} of {exchange['machines']:,} machines, {_duration(exchange['seconds'])}"


def _duration(value: float) -> str:
    if value < 1e-4:
        return "under 0.1 ms"
    return f"{value:.2g} s" if value >= 1 else f"{1000 * value:.2g} ms"


def _shape(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes)) or "one number"


def amount(count: float) -> str:
    """Return bytes in the unit that reads best: `1.34 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"
