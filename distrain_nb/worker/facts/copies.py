"""Compares weights that ranks should have in common, and says why they differ.

Healthy copies are equal to the last bit. A difference counts from a few roundings on, as machines
of different kinds may round differently. Steps are compared by their number; of ranks that have
made different numbers of steps, those that all have made.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.record import (
    COLLECTIVES,
    END,
    FINAL,
    LOADER,
    LOSS,
    MODULE,
    OPTIMIZER,
    WEIGHTS,
    Fact,
    Facts,
    of_kind,
    ranks_in,
    unpacked,
)

TOLERANCE, TOLERANCE_OF_SMALL = 1e-5, 1e-3  # of a tensor's norm; float16 and bfloat16
FEWEST_ALONE_STEPS, FEWEST_HELD_STEPS, FEWEST_UNREACHED_STEPS = 2, 64, 4

States = Dict[int, Dict[int, Fact]]  # facts of weights by step, then by rank


class _Difference(NamedTuple):
    """The first step at which a tensor differs, and the last before at which all were equal."""

    step: int
    since: Optional[int]
    tensor: int
    ranks: Tuple[int, ...]
    facts: Dict[int, Fact]


def weight_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield what differs in modules under DDP, then in what no wrapper knows."""
    for module, ranks in _by_name(facts, MODULE):
        states = _states(facts, module["of"], ranks)
        yield from _rates(states)
        difference = _first_difference(states)
        if difference is not None and not _is_by_hand(
            facts, module["of"], ranks, difference, states
        ):
            yield _of_module(module, difference, states)
        yield from _unreached(facts, module, ranks, states)
    for optimizer, ranks in _by_name(facts, OPTIMIZER):
        states = _states(facts, optimizer["of"], ranks)
        difference = _first_difference(states)
        if difference is not None:
            yield from _of_optimizer(facts, optimizer, difference, states)


def loss_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield the loss that was not finite on one rank before it was so on others."""
    first = {rank: of_kind(noted, LOSS)[:1] for rank, noted in facts.items()}
    present = {rank: noted[0] for rank, noted in first.items() if noted}
    if not present or not any(of_kind(noted, MODULE) for noted in facts.values()):
        return
    earliest = min(fact["backward"] for fact in present.values())
    ranks = [rank for rank, fact in present.items() if fact["backward"] == earliest]
    if len(ranks) == 1 and len(facts) > 1 and _have_passed(facts, ranks[0], earliest):
        fact = present[ranks[0]]
        fields = {"value": fact["value"], "step": fact["step"]}
        yield Deviation(deviations.LOSS, tuple(ranks), fact["place"], fields)


def _have_passed(facts: Facts, rank: int, backward: int) -> bool:
    """Return whether all other ranks are known to have come as far, with a loss that was finite."""
    ends = [of_kind(noted, END) for other, noted in facts.items() if other != rank]
    losses = [of_kind(noted, LOSS) for other, noted in facts.items() if other != rank]
    return all(
        (end and end[0].get("backwards", 0) >= backward) or loss for end, loss in zip(ends, losses)
    )


def _by_name(facts: Facts, kind: str) -> Iterator[Tuple[Fact, List[int]]]:
    """Yield modules or optimizers that several ranks have, which are alike, with those ranks."""
    named: Dict[Any, List[int]] = {}
    first: Dict[Any, Fact] = {}
    for rank, noted in facts.items():
        for fact in of_kind(noted, kind):
            alike = fact.get("names") if kind == MODULE else fact.get("shapes")
            key = (fact["of"], str(fact.get("ranks")), str(alike))
            named.setdefault(key, []).append(rank)
            first.setdefault(key, fact)
    for key, ranks in named.items():
        group = first[key].get("ranks")
        members = ranks if group is None else sorted({*ranks} & {*ranks_in(group)})
        if len(members) > 1:
            yield first[key], members


def _states(facts: Facts, name: str, ranks: Sequence[int]) -> States:
    states: States = {}
    for rank in ranks:
        for fact in of_kind(facts[rank], WEIGHTS):
            if fact["of"] == name:
                states.setdefault(fact["step"], {})[rank] = fact
    return {step: states[step] for step in sorted(states) if len(states[step]) > 1}


def _first_difference(states: States) -> Optional[_Difference]:
    since = None
    for step, by_rank in states.items():
        different = _differing(by_rank, "weights")
        if different:
            tensor = min(different)
            return _Difference(step, since, tensor, different[tensor], by_rank)
        since = step
    return None


def _differing(by_rank: Dict[int, Fact], field: str) -> Dict[int, Tuple[int, ...]]:
    """Return the tensors that differ, by number, with a rank that has the usual value and those
    that have another."""
    texts = {rank: fact.get(field) for rank, fact in by_rank.items()}
    if None in texts.values() or len(set(texts.values())) == 1:
        return {}
    small = any(fact.get("small") for fact in by_rank.values())
    tolerance = TOLERANCE_OF_SMALL if small else TOLERANCE
    numbers = {rank: unpacked(str(text)) for rank, text in texts.items()}
    first = min(numbers)
    if len({len(row) for row in numbers.values()}) > 1:
        return {}
    different: Dict[int, Set[int]] = {}
    for rank, row in numbers.items():
        for tensor in range(len(row) // 2):
            if not _is_equal(numbers[first][2 * tensor :], row[2 * tensor :], tolerance):
                different.setdefault(tensor, {first}).add(rank)
    return {tensor: tuple(sorted(ranks)) for tensor, ranks in different.items()}


def _is_equal(one: Sequence[float], other: Sequence[float], tolerance: float) -> bool:
    """Compare projection and norm of two tensors; what is not finite says nothing."""
    if not all(map(math.isfinite, (*one[:2], *other[:2]))):
        return True
    norm = max(one[1], other[1])
    return all(abs(a - b) <= tolerance * norm for a, b in zip(one[:2], other[:2]))


def _have_equal_gradients(by_rank: Dict[int, Fact]) -> bool:
    """Return whether ranks have stepped by the same gradients, which only an exchange makes so."""
    texts = [fact.get("gradients") for fact in by_rank.values()]
    if None in texts or _differing(by_rank, "gradients"):
        return False
    return any(number > 0 for number in unpacked(str(texts[0]))[1::2])


def _is_by_hand(
    facts: Facts, name: str, ranks: Sequence[int], difference: _Difference, states: States
) -> bool:
    """Return whether a program that goes round DDP's exchange may exchange weights itself.

    So does local SGD, every so many steps. Where passes were under no_sync() on purpose, that is
    known when some steps have passed, or all.
    """
    if _exchanges_by_hand(facts, ranks, name):
        return difference.step > 0 and _goes_round(difference)
    is_held = any(fact.get("held") for fact in difference.facts.values())
    have_ended = all(of_kind(facts[rank], END) for rank in ranks)
    return is_held and not have_ended and max(states) < FEWEST_HELD_STEPS


def _exchanges_by_hand(facts: Facts, ranks: Iterable[int], name: str) -> bool:
    """Return whether a program may exchange weights or gradients itself, by collectives as large.

    One behind the last step has either left equal weights, or was for something else, as to compare
    them. Until a rank has ended, it isn't known which step is the last.
    """
    ends = {rank: of_kind(facts[rank], END) for rank in ranks}
    is_after = False
    for rank, end in ends.items():
        calls = of_kind(facts[rank], COLLECTIVES)
        last = end if end and "large" in end[0] else calls
        if any(fact.get("large") for fact in last):
            return True
        is_after |= bool(end and end[0].get("large_after"))
    final = {r: f for r in ends for f in of_kind(facts[r], FINAL) if f["of"] == name}
    return is_after and not (len(final) == len(ends) and _differing(final, "weights"))


def _goes_round(difference: _Difference) -> bool:
    facts = difference.facts.values()
    return any(fact.get("held") or fact.get("bypassed") for fact in facts)


def _of_module(module: Fact, difference: _Difference, states: States) -> Deviation:
    names = module.get("names") or []
    tensor = names[difference.tensor] if difference.tensor < len(names) else "a weight"
    latest = states[max(states)]
    ranks = difference.ranks
    place = next((f["place"] for f in difference.facts.values() if f.get("place")), "")
    place = place or next((f["place"] for f in latest.values() if f.get("place")), "")
    fields = {
        "tensor": tensor,
        "step": difference.step,
        "since": 0 if difference.since is None else difference.since,
        "steps": max(states),
        "wrapper": "DistributedDataParallel",
    }
    if difference.step == 0:
        fields["instead"] = "before DistributedDataParallel wraps the model: load them on all ranks"
        return Deviation(deviations.START, ranks, module.get("place", ""), fields)
    bypassed = max(fact.get("bypassed", 0) for fact in latest.values())
    if any(fact.get("bypassed") for fact in difference.facts.values()):
        lines = [fact["bypass"] for fact in latest.values() if fact.get("bypass")]
        fields["bypassed"] = bypassed
        return Deviation(deviations.BYPASSED, ranks, (lines or [place])[0], fields)
    if any(fact.get("held") for fact in difference.facts.values()):
        fields["held"] = max(fact.get("held", 0) for fact in latest.values())
        return Deviation(deviations.NO_SYNC, ranks, place, fields)
    exchanges = {rank: difference.facts[rank].get("exchanges", 0) for rank in ranks}
    if len(set(exchanges.values())) > 1:
        fields["exchanges"] = " and ".join(str(exchanges[rank]) for rank in ranks)
        fields["steps"] = difference.step
        return Deviation(deviations.SKIPPED, ranks, place, fields)
    return Deviation(deviations.DIFFER, ranks, place, fields)


def _unreached(
    facts: Facts, module: Fact, ranks: Sequence[int], states: States
) -> Iterator[Deviation]:
    """Yield the parameters that have had no gradient on any rank until the end.

    Steps between those that are noted may have given them one: then they have changed.
    """
    if not states or max(states) < FEWEST_UNREACHED_STEPS:
        return
    if not all(of_kind(facts[rank], END) for rank in ranks):
        return
    noted = [f for by_rank in states.values() for f in by_rank.values() if "unreached" in f]
    lists = {tuple(fact["unreached"]) for fact in noted}  # those of many ranks are mostly alike
    numbers = set.intersection(*map(set, lists)) if lists else set()
    first, last = (
        unpacked(next(iter(states[n].values()))["weights"]) for n in (min(states), max(states))
    )
    names = module.get("names") or []
    still = [
        names[number]
        for number in sorted(numbers)
        if number < len(names) and first[2 * number :][:2] == last[2 * number :][:2]
    ]
    if still:
        more = f" and {len(still) - 1} more parameters" if len(still) > 1 else ""
        fields = {"tensor": still[0] + more, "steps": max(states)}
        yield Deviation(deviations.UNREACHED, tuple(ranks), module.get("place", ""), fields)


def _of_optimizer(
    facts: Facts, optimizer: Fact, difference: _Difference, states: States
) -> Iterator[Deviation]:
    """Yield why parameters that no wrapper knows differ, where they were meant to be equal."""
    noted = {step: by_rank for step, by_rank in states.items() if step and _has_gradients(by_rank)}
    if not noted:
        return
    ranks, place = difference.ranks, optimizer.get("place", "")
    fields: Dict[str, Any] = {
        "tensor": _tensor(optimizer, difference.tensor),
        "step": difference.step,
        "horovod": "",
    }
    if all(map(_have_equal_gradients, noted.values())):
        if difference.step == 0 and _stay_apart(states):
            by_horovod = "by hvd.broadcast_parameters(model.state_dict(), root_rank=0)"
            by_hand = "by dist.broadcast(parameter, 0) for each parameter"
            fields["instead"] = by_horovod if optimizer.get("horovod") else by_hand
            yield Deviation(deviations.START, ranks, place, fields)
        return
    apart = all(_differing(by_rank, "gradients") for by_rank in noted.values())
    if not apart or _differ_in_settings(states):
        return
    if optimizer.get("others"):
        if difference.step:
            yield Deviation(deviations.LOOSE, ranks, place, fields)
    elif _trains_alone(facts, optimizer["of"], difference, states):
        yield Deviation(deviations.UNWRAPPED, ranks, place, fields)


def _has_gradients(by_rank: Dict[int, Fact]) -> bool:
    texts = [fact.get("gradients") for fact in by_rank.values()]
    return all(text and any(map(math.isfinite, unpacked(text))) for text in texts)


def _stay_apart(states: States) -> bool:
    return all(_differing(by_rank, "weights") for by_rank in states.values())


def _tensor(optimizer: Fact, number: int) -> str:
    name = (optimizer.get("names") or [""] * (number + 1))[number]
    shape = "×".join(map(str, optimizer["shapes"][number])) or "one number"
    return name or f"parameter {number} of the optimizer ({shape})"


def _trains_alone(facts: Facts, name: str, difference: _Difference, states: States) -> bool:
    """Return whether one model was meant, and its ranks have ended without any exchange.

    Models of their own are meant where ranks begin with different weights and share out no data,
    as members of an ensemble do, or where something else has wrapped or sharded them.
    """
    ends = [of_kind(noted, END) for noted in facts.values()]
    if not all(ends) or max(states) < FEWEST_ALONE_STEPS:
        return False
    if any(end[0].get("sharded") for end in ends):
        return False
    if any(of_kind(noted, MODULE) for noted in facts.values()):
        return False
    if _exchanges_by_hand(facts, facts, name):
        return False
    if not all(of_kind(noted, COLLECTIVES) for noted in facts.values()):
        return False
    shares = any(
        loader.get("replicas", 0) > 1
        for noted in facts.values()
        for loader in of_kind(noted, LOADER)
    )
    return difference.step > 0 or shares


def _differ_in_settings(states: States) -> bool:
    return any(len(_settings(by_rank)) > 1 for by_rank in states.values())


def _settings(by_rank: Dict[int, Fact]) -> Dict[str, List[int]]:
    """Return the settings of the optimizer that ranks have, and which ranks have which."""
    settings: Dict[str, List[int]] = {}
    for rank, fact in by_rank.items():
        if fact.get("values"):
            settings.setdefault(f"{fact['values']} {fact.get('rates', 0.0):.9g}", []).append(rank)
    return settings


def _rates(states: States) -> Iterator[Deviation]:
    """Yield the first step before which ranks have set an optimizer differently."""
    for step, by_rank in states.items():
        settings = _settings(by_rank)
        if len(settings) > 1:
            texts = [
                f"{_shown(by_rank[ranks[0]], by_rank)} on {deviations.named(ranks)}"
                for ranks in settings.values()
            ]
            ranks = tuple(sorted(rank for ranks in settings.values() for rank in ranks))
            place = next((f["place"] for f in by_rank.values() if f.get("place")), "")
            fields = {"step": step, "values": ", ".join(texts)}
            yield Deviation(deviations.RATE, ranks, place, fields)
            return


def _shown(fact: Fact, by_rank: Dict[int, Fact]) -> str:
    """Show the learning rate, or what else differs: all settings, or the rates of earlier steps."""
    rates = {other["values"][0][0] for other in by_rank.values()}
    if len(rates) > 1:
        return f"lr {fact['values'][0][0]:.6g}"
    if len({str(other["values"]) for other in by_rank.values()}) > 1:
        return f"settings {fact['values']}"
    return f"lr {fact['rates'] / fact['step']:.6g} in the mean of its steps"
