"""Compares the collectives of ranks, and how many steps they have made."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.deviations import Deviation, named
from distrain_nb.worker.facts.record import COLLECTIVES, END, MARK, MODULE, Fact, Facts, of_kind

# Those whose tensors have one size on all ranks; others may differ.
_EQUAL_SIZES = ("all_reduce", "allreduce", "broadcast", "reduce")

_Key = Tuple[Any, ...]  # generation, group, number


class _Call(NamedTuple):
    """A collective of one rank."""

    operation: str
    sizes: str
    type: str
    place: str
    in_backward: bool

    @property
    def words(self) -> str:
        if self.in_backward:
            return "the exchange of gradients"
        tensor = " ".join(filter(None, (self.sizes, self.type)))
        return f"{self.operation} of {tensor}" if tensor else self.operation

    def conflicts(self, other: _Call) -> bool:
        """Return whether two ranks can't mean the same collective by these. What is empty is not
        known: the sizes of gradients before their exchange, the line of a thread of PyTorch's."""
        if self.in_backward != other.in_backward and self.place and other.place:
            return True
        if self.in_backward or other.in_backward:
            return False
        if self.operation != other.operation:
            return True
        pairs = ((self.sizes, other.sizes), (self.type, other.type))
        return self.operation in _EQUAL_SIZES and any(a and b and a != b for a, b in pairs)


def order_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield the first collective in which ranks do different things, and a rank that left early."""
    groups = _groups(facts)
    calls: Dict[_Key, Dict[int, _Call]] = {}
    for rank, noted in facts.items():
        for fact in of_kind(noted, COLLECTIVES):
            for generation, group, number, *fields in fact["calls"]:
                calls.setdefault((generation, group, number), {})[rank] = _Call(*fields)
        for key, call in _marked(noted):
            calls.setdefault(key, {}).setdefault(rank, call)
    members = {name: frozenset(ranks) for name, ranks in groups.items()}
    for key in sorted(calls, key=lambda key: (key[0], key[2])):
        by_rank = {r: c for r, c in calls[key].items() if r in members.get(key[1], ())}
        first = by_rank[min(by_rank)] if by_rank else None
        if first and any(first.conflicts(call) for call in by_rank.values()):
            yield _mixed(key, by_rank)
            break
    else:
        yield from _ended_early(facts, calls, groups)


def step_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield a module with which ranks have made different numbers of steps until their ends."""
    ends = {rank: of_kind(noted, END) for rank, noted in facts.items()}
    done = {r: end[0] for r, end in ends.items() if end and not end[0].get("failed")}
    if any(end.get("joins") for end in done.values()):
        return
    for module in {f["of"]: f for noted in facts.values() for f in of_kind(noted, MODULE)}.values():
        members = [rank for rank in module.get("ranks", ()) if rank in done]
        counts = {rank: done[rank].get("steps", {}).get(module["of"], 0) for rank in members}
        if len(members) == len(module.get("ranks", ())) and len(set(counts.values())) > 1:
            shown = ", ".join(f"{count} on rank {rank}" for rank, count in counts.items())
            place = _last_place(facts, module, min(counts, key=lambda rank: counts[rank]))
            fields = {"counts": shown, "why": ""}
            yield Deviation(deviations.UNEVEN, tuple(members), place, fields)
            return


def _last_place(facts: Facts, module: Fact, rank: int) -> str:
    places = [f["place"] for f in facts[rank] if f.get("of") == module["of"] and f.get("place")]
    return places[-1] if places else ""


def _marked(noted: Sequence[Fact]) -> Iterator[Tuple[_Key, _Call]]:
    """Yield the collective that a rank has begun last."""
    for fact in of_kind(noted, MARK):
        fields = fact["text"].split("\t")
        if len(fields) == 6:
            generation, group, operation, sizes, place, in_backward = fields
            key = (int(generation), group, int(fact["number"]))
            yield key, _Call(operation, sizes, "", place, in_backward == "1")


def _groups(facts: Facts) -> Dict[str, List[int]]:
    """Return the ranks of groups that all their members agree on."""
    groups: Dict[str, List[int]] = {}
    differing = set()
    for rank, noted in facts.items():
        for fact in of_kind(noted, COLLECTIVES):
            for name, ranks in fact["groups"].items():
                if rank in ranks and groups.setdefault(name, ranks) != ranks:
                    differing.add(name)
    return {name: ranks for name, ranks in groups.items() if name not in differing}


def _mixed(key: _Key, by_rank: Dict[int, _Call]) -> Deviation:
    first = by_rank[min(by_rank)]
    other = [rank for rank, call in sorted(by_rank.items()) if first.conflicts(call)]
    one = [rank for rank in sorted(by_rank) if rank not in other]
    second = by_rank[other[0]]
    # What is no exchange of gradients is what stands at another place than it should.
    odd = first if second.in_backward and not first.in_backward else second
    fields = {
        "number": key[2],
        "first": first.words,
        "first_ranks": named(one),
        "first_place": first.place or "in a library",
        "second": second.words,
        "second_ranks": named(other),
        "second_place": second.place or "in a library",
    }
    return Deviation(deviations.MIXED, tuple(sorted(by_rank)), odd.place, fields)


def _ended_early(
    facts: Facts, calls: Dict[_Key, Dict[int, _Call]], groups: Mapping[str, Sequence[int]]
) -> Iterator[Deviation]:
    """Yield a rank that has come to its end while another failed in a collective with it."""
    ends = {rank: end[0] for rank, noted in facts.items() for end in [of_kind(noted, END)] if end}
    clean = [rank for rank, end in ends.items() if not end.get("failed")]
    failed = [rank for rank, end in ends.items() if end.get("failed")]
    for one in clean:
        for other in failed:
            last = _last(calls, one, groups, other), _last(calls, other, groups, one)
            if last[0] and last[1] and last[0][0][:2] == last[1][0][:2]:
                (key, _), (other_key, call) = last[0], last[1]
                if other_key[2] > key[2]:
                    fields = {
                        "left": key[2],
                        "left_ranks": named([one]),
                        "number": other_key[2],
                        "other_place": call.place or "in a library",
                    }
                    yield Deviation(deviations.GONE, (other,), call.place, fields)
                    return


def _last(
    calls: Dict[_Key, Dict[int, _Call]],
    rank: int,
    groups: Mapping[str, Sequence[int]],
    other: int,
) -> Any:
    """Return the last collective of a rank in a group that another is in too; None for none."""
    shared = [
        (key, by_rank[rank])
        for key, by_rank in calls.items()
        if rank in by_rank and other in groups.get(key[1], ())
    ]
    return max(shared, key=lambda pair: (pair[0][0], pair[0][2]), default=None)
