"""Compares the collectives of ranks, and how many steps they have made."""

from __future__ import annotations

from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.deviations import Deviation, named
from distrain_nb.worker.facts.record import (
    COLLECTIVES,
    END,
    MARK,
    MODULE,
    Fact,
    Facts,
    of_kind,
    ranks_in,
)

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
    members = _members(facts)
    calls_of_ranks = {rank: _calls_by_key(noted) for rank, noted in facts.items()}
    calls = _by_collective(calls_of_ranks, members)
    for key in sorted(calls, key=lambda key: (key[0], key[2])):
        by_rank = {rank: call for call, ranks in calls[key].items() for rank in ranks}
        first = by_rank[min(by_rank)]
        if any(first.conflicts(call) for call in calls[key]):
            yield _mixed(key, by_rank)
            break
    else:
        yield from _ended_early(facts, calls_of_ranks, members)


def _calls_by_key(noted: Sequence[Fact]) -> Dict[_Key, Tuple[Any, ...]]:
    """Return the collectives that a rank has made, as they were noted, or else marked."""
    calls = (tuple(call) for fact in of_kind(noted, COLLECTIVES) for call in fact["calls"])
    return {**dict(_marked(noted)), **{call[:3]: call for call in calls}}


def _by_collective(
    calls_of_ranks: Mapping[int, Mapping[_Key, Tuple[Any, ...]]],
    members: Mapping[str, FrozenSet[int]],
) -> Dict[_Key, Dict[_Call, List[int]]]:
    """Return who of a group's members did what, by collective. What 1,024 ranks do is mostly the
    same, so each way of doing it is looked at once."""
    ranks_by_call: Dict[Tuple[Any, ...], List[int]] = {}
    for rank, by_key in calls_of_ranks.items():
        for call in by_key.values():
            ranks_by_call.setdefault(call, []).append(rank)
    calls: Dict[_Key, Dict[_Call, List[int]]] = {}
    for call, ranks in ranks_by_call.items():
        group = members.get(call[1], frozenset())
        present = ranks if group.issuperset(ranks) else [rank for rank in ranks if rank in group]
        if present:
            calls.setdefault(call[:3], {}).setdefault(_Call(*call[3:]), []).extend(present)
    return calls


def step_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield a module with which ranks have made different numbers of steps until their ends."""
    ends = {rank: of_kind(noted, END) for rank, noted in facts.items()}
    done = {r: end[0] for r, end in ends.items() if end and not end[0].get("failed")}
    if any(end.get("joins") for end in done.values()):
        return
    for module in {f["of"]: f for noted in facts.values() for f in of_kind(noted, MODULE)}.values():
        ranks = ranks_in(module.get("ranks", ()))
        members = [rank for rank in ranks if rank in done]
        counts = {rank: done[rank].get("steps", {}).get(module["of"], 0) for rank in members}
        if len(members) == len(ranks) and len(set(counts.values())) > 1:
            shown = ", ".join(f"{count} on rank {rank}" for rank, count in counts.items())
            place = _last_place(facts, module, min(counts, key=lambda rank: counts[rank]))
            fields = {"counts": shown, "why": ""}
            yield Deviation(deviations.UNEVEN, tuple(members), place, fields)
            return


def _last_place(facts: Facts, module: Fact, rank: int) -> str:
    places = [f["place"] for f in facts[rank] if f.get("of") == module["of"] and f.get("place")]
    return places[-1] if places else ""


def _marked(noted: Sequence[Fact]) -> Iterator[Tuple[_Key, Tuple[Any, ...]]]:
    """Yield the collective that a rank has begun last, as it would have noted it."""
    for fact in of_kind(noted, MARK):
        fields = fact["text"].split("\t")
        if len(fields) == 6:
            generation, group, operation, sizes, place, in_backward = fields
            key = (int(generation), group, int(fact["number"]))
            yield key, (*key, operation, sizes, "", place, in_backward == "1")


def _members(facts: Facts) -> Dict[str, FrozenSet[int]]:
    """Return the ranks of groups that all their members agree on."""
    groups: Dict[str, FrozenSet[int]] = {}
    differing = set()
    for rank, noted in facts.items():
        for fact in of_kind(noted, COLLECTIVES):
            for name, field in fact["groups"].items():
                ranks = frozenset(ranks_in(field))
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
    facts: Facts,
    calls_of_ranks: Mapping[int, Mapping[_Key, Tuple[Any, ...]]],
    members: Mapping[str, FrozenSet[int]],
) -> Iterator[Deviation]:
    """Yield a rank that has come to its end while another failed in a collective with it."""
    ends = {rank: end[0] for rank, noted in facts.items() for end in [of_kind(noted, END)] if end}
    failed = [rank for rank, end in ends.items() if end.get("failed")]
    clean = [rank for rank, end in ends.items() if not end.get("failed")]
    pairs = [(one, other) for one in clean for other in failed]
    last = {rank: _last_of_groups(calls_of_ranks[rank]) for rank in (ends if pairs else ())}
    for one, other in pairs:
        ended_at = _last_with(last[one], members, other)
        failed_in = _last_with(last[other], members, one)
        if ended_at and failed_in and ended_at[:2] == failed_in[:2] and failed_in[2] > ended_at[2]:
            place = failed_in[6]
            fields = {
                "left": ended_at[2],
                "left_ranks": named([one]),
                "number": failed_in[2],
                "other_place": place or "in a library",
            }
            yield Deviation(deviations.GONE, (other,), place, fields)
            return


def _last_of_groups(calls: Mapping[_Key, Tuple[Any, ...]]) -> List[Tuple[Any, ...]]:
    """Return a rank's last collective in each of its groups, the latest first."""
    last: Dict[str, Tuple[Any, ...]] = {}
    for key in sorted(calls, key=lambda key: (key[0], key[2])):
        last[key[1]] = calls[key]
    return sorted(last.values(), key=lambda call: (call[0], call[2]), reverse=True)


def _last_with(
    last: Sequence[Tuple[Any, ...]], members: Mapping[str, FrozenSet[int]], other: int
) -> Optional[Tuple[Any, ...]]:
    """Return a rank's last collective in a group that another is in too; None for none."""
    return next((call for call in last if other in members.get(call[1], ())), None)
