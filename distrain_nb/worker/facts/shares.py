"""Compares the data that ranks have read, of those that exchange gradients.

What is compared are samples: their indices in the whole dataset, and a number of their contents.
Indices alone say nothing, as ranks may have datasets of their own. Loaders are compared that lie
around optimizer steps; those of an evaluation may read alike.
"""

from __future__ import annotations

import math
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from distrain_nb.worker.facts import deviations
from distrain_nb.worker.facts.deviations import Deviation
from distrain_nb.worker.facts.record import (
    EPOCH,
    LOADER,
    MODULE,
    OPTIMIZER,
    SAMPLES,
    Fact,
    Facts,
    of_kind,
    ranks_in,
    unpacked,
)

FEWEST_SAMPLES, FEWEST_COMMON = 2, 2
FEWEST_IN_ORDER = 4  # that chance hardly orders alike twice
_ROUNDING = 1e-6

Loaders = Dict[int, Fact]  # one loader of the program, by rank


def data_deviations(facts: Facts) -> Iterator[Deviation]:
    """Yield what is odd about the training data of ranks that exchange gradients."""
    ranks = _exchanging(facts)
    names = [fact["of"] for rank in ranks for fact in of_kind(facts[rank], LOADER)]
    for name in dict.fromkeys(names):
        loaders = {
            rank: fact
            for rank in ranks
            for fact in of_kind(facts[rank], LOADER)
            if fact["of"] == name
        }
        if len(loaders) < 2 or not all(_trains(facts[rank], name) for rank in loaders):
            continue
        split = _split(loaders)
        if split is not None:
            yield split
        else:
            yield from _shared(facts, name, loaders)
        yield from _same_epochs(facts, name, loaders)


def _exchanging(facts: Facts) -> List[int]:
    """Return the ranks that exchange gradients with each other: of the first module that has
    several; else all, if Horovod exchanges for them."""
    modules = [fact for noted in facts.values() for fact in of_kind(noted, MODULE)]
    if modules:
        return [rank for rank in ranks_in(modules[0]["ranks"]) if rank in facts]
    optimizers = [fact for noted in facts.values() for fact in of_kind(noted, OPTIMIZER)]
    return list(facts) if any(fact.get("horovod") for fact in optimizers) else []


def _trains(noted: Sequence[Fact], name: str) -> bool:
    """Return whether optimizers have stepped between the batches of a loader."""
    passes = [fact for fact in noted if fact["kind"] in (SAMPLES, EPOCH) and fact["of"] == name]
    return any(fact["steps"] > fact["began"] for fact in passes)


def _split(loaders: Loaders) -> Optional[Deviation]:
    """Return the deviation of samplers that share out different datasets."""
    shares = {rank: fact for rank, fact in loaders.items() if fact["replicas"] == len(loaders)}
    if len(shares) < len(loaders):
        return None
    subsets = {rank: fact["subset"] for rank, fact in shares.items()}
    sizes = {rank: fact["size"] for rank, fact in shares.items()}
    if None not in sizes.values() and len(set(sizes.values())) > 1:
        difference = f"of {' and '.join(map(str, sizes.values()))} samples"
    elif None not in subsets.values() and len(set(subsets.values())) > 1:
        difference = f"other {next(iter(sizes.values()))} samples of the same dataset on each"
    else:
        return None
    return _made_split(shares, difference)


def _made_split(loaders: Loaders, difference: str) -> Deviation:
    first = next(iter(loaders.values()))
    place = first["split_at"] or first["made_at"]
    fields = {"difference": difference}
    return Deviation(deviations.SPLIT, tuple(loaders), place, fields)


def _shared(facts: Facts, name: str, loaders: Loaders) -> Iterator[Deviation]:
    """Yield that two ranks have read the same samples, in the same order or in orders of their
    own."""
    samples = {rank: _samples(facts[rank], name, 1) for rank in loaders}
    first, *others = loaders
    for other in others:
        one, two = samples[first], samples[other]
        if not one or not two:
            continue
        place = loaders[first]["made_at"]
        if _are_in_order(one, two):
            why, instead = _reason(loaders[first], loaders[other])
            fields = {"why": why, "instead": instead}
            yield Deviation(deviations.SAME, (first, other), place, fields)
            return
        is_unshared = all(
            fact["replicas"] < 2 and fact["size"] is not None and fact["drawn"] == fact["size"]
            for fact in (loaders[first], loaders[other])
        )
        if is_unshared and _have_common(one, two):
            subsets = [loaders[rank]["subset"] for rank in (first, other)]
            if None not in subsets and subsets[0] != subsets[1]:
                yield _made_split(loaders, "some samples are in several of them")
            elif loaders[first]["size"] == loaders[other]["size"]:
                fields = {"count": f"{loaders[first]['size']:,}", "why": "", "instead": ""}
                yield Deviation(deviations.UNSHARED, (first, other), place, fields)
            return


def _reason(one: Fact, other: Fact) -> Tuple[str, str]:
    if one["replicas"] > 1 and one["replica"] == other["replica"] is not None:
        why = f" (both samplers have rank={one['replica']})"
        return why, " with rank=dist.get_rank()"
    if one["size"] is None:
        return "", ", or skip the samples of other ranks in the __iter__ of an IterableDataset"
    if "Distributed" in one["sampler"] and one["replicas"] < 2:
        return " (the sampler has num_replicas=1)", ", made after init_process_group"
    return "", "" if not one.get("shuffles") else " instead of shuffle=True"


def _samples(noted: Sequence[Fact], name: str, epoch: int) -> List[Tuple[int, float]]:
    """Return indices and contents of the samples of an epoch, as far as they were noted."""
    passes = [f for f in of_kind(noted, SAMPLES) if f["of"] == name and f["epoch"] == epoch]
    if not passes:
        return []
    return list(zip(passes[-1]["indices"], unpacked(passes[-1]["contents"])))


def _are_in_order(one: Sequence[Tuple[int, float]], two: Sequence[Tuple[int, float]]) -> bool:
    """Return whether both have the same contents in the same order. Samples that are all alike say
    nothing."""
    common = list(zip(one, two))
    varied = len({content for _, content in one[: len(common)]}) >= FEWEST_SAMPLES
    return varied and all(_is_alike(a[1], b[1]) for a, b in common)


def _have_common(one: Sequence[Tuple[int, float]], two: Sequence[Tuple[int, float]]) -> bool:
    """Return whether several indices are in both, with the same contents."""
    first, second = dict(one), dict(two)
    common = [index for index in first if index >= 0 and index in second]
    varied = len({first[index] for index in common}) >= FEWEST_COMMON
    return varied and all(_is_alike(first[index], second[index]) for index in common)


def _is_alike(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=1e-12)


def _same_epochs(facts: Facts, name: str, loaders: Loaders) -> Iterator[Deviation]:
    """Yield that samplers which shuffle have not been told of the second epoch, on any rank."""
    for rank, loader in loaders.items():
        one, two = (_samples(facts[rank], name, epoch) for epoch in (1, 2))
        order = [index for index, _ in one], [index for index, _ in two]
        count = min(map(len, order))
        if not (loader["shuffles"] and loader["replicas"] > 1) or count < FEWEST_IN_ORDER:
            return
        if order[0][:count] != order[1][:count] or len(set(order[0][:count])) < FEWEST_IN_ORDER:
            return
    place = next(iter(loaders.values()))["read_at"]
    yield Deviation(deviations.EPOCH, tuple(loaders), place)
