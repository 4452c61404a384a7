"""Says why a run makes no progress: a pure function of what its ranks do.

A rank that gets somewhere is no reason for alarm, nor is one that sleeps or computes while nobody
waits for it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.supervisor.acts import (
    ASKS,
    BLOCKED,
    ENDED,
    HOLDS,
    LOOPS,
    MOVES,
    POLLS,
    STOPPED,
    WAITS,
    Act,
)

# What doesn't end by itself, as far as can be seen.
_STUCK = (BLOCKED, STOPPED, ENDED, POLLS, LOOPS, HOLDS, ASKS)
# What nobody would doubt, however seldom the run prints.
_CERTAIN = (STOPPED, ENDED)


class Verdict(NamedTuple):
    """A sentence; whether it holds whatever the run's rhythm is; whether the cause is elsewhere,
    where this machine doesn't see it."""

    text: str
    certain: bool
    elsewhere: bool = False


def judge(ranks: Sequence[Act], elsewhere: bool = False) -> Optional[Verdict]:
    """Return why nothing goes on; None where something does, or may.

    With `elsewhere` ranks of other machines take part, whom this one doesn't see.
    """
    waiting = [rank for rank in ranks if rank.kind == WAITS]
    others = [rank for rank in ranks if rank.kind != WAITS]
    stopped = [rank for rank in ranks if rank.kind == STOPPED]
    if not ranks or (not stopped and any(rank.kind == MOVES for rank in ranks)):
        return None
    if not others:
        return _judge_waiting(waiting, elsewhere)
    stuck = [rank for rank in others if rank.kind in _STUCK]
    if waiting:
        return _verdict(waiting, others) if len(stuck) == len(others) or stopped else None
    living = [rank for rank in ranks if rank.kind != ENDED]
    if stopped or (living and all(rank.kind in (BLOCKED, POLLS, ASKS) for rank in living)):
        return _verdict([], others)
    return None


def _judge_waiting(waiting: Sequence[Act], elsewhere: bool) -> Optional[Verdict]:
    """Judge ranks that all wait in collectives: in the same one, or in different ones."""
    calls = Counter((rank.call, rank.place) for rank in waiting)
    (common, most), *_ = calls.most_common(1)
    if len(calls) == 1:
        words = ", for ranks elsewhere" if elsewhere else ""
        return Verdict(_all_at(waiting) + words, False, elsewhere)
    if 2 * most > len(waiting):
        usual = [rank for rank in waiting if (rank.call, rank.place) == common]
        return _verdict(usual, [rank for rank in waiting if rank not in usual])
    return _verdict([], waiting)


def _verdict(waiting: Sequence[Act], others: Sequence[Act]) -> Verdict:
    same = {(rank.words, rank.place) for rank in (*waiting, *others)}
    certain = any(rank.kind in _CERTAIN for rank in others)
    elsewhere = not certain and any(rank.kind == ASKS for rank in others)
    if len(same) == 1:
        return Verdict(_all_at([*waiting, *others]), False, elsewhere)
    shapes = len({rank.call[:1] for rank in waiting}) != len({rank.call for rank in others})
    parts = [_group(ranks, shapes) for ranks in (*_grouped(waiting), *_grouped(others))]
    return Verdict("; ".join(parts), certain, elsewhere)


def _grouped(ranks: Sequence[Act]) -> List[List[Act]]:
    groups: Dict[Tuple[str, str, Tuple[Any, ...]], List[Act]] = {}
    for rank in ranks:
        groups.setdefault((rank.words, rank.place, rank.call), []).append(rank)
    return list(groups.values())


def _group(ranks: Sequence[Act], shapes: bool) -> str:
    rank, several = ranks[0], len(ranks) > 1
    words = _words(rank, several=several)
    if rank.call and shapes and len(rank.call) > 1 and rank.call[1]:
        words += f" of {rank.call[1]}"
    return f"{_names(ranks)} {words}" + (f" ({rank.place})" if rank.place else "")


def _names(ranks: Sequence[Act]) -> str:
    numbers = [rank.label[len("rank ") :] for rank in ranks if rank.label.startswith("rank ")]
    if len(ranks) == 1 or len(numbers) < len(ranks):
        return ", ".join(rank.label for rank in ranks)
    return f"ranks {', '.join(numbers)}"


def _all_at(ranks: Sequence[Act]) -> str:
    rank, several = ranks[0], len(ranks) > 1
    who = f"all {len(ranks)} ranks" if several else rank.label
    if rank.call:
        at = f" at {rank.place}," if rank.place else ""
        return f"{who} {'are' if several else 'is'}{at} in {rank.call[0]}"
    return f"{who} {_words(rank, several=several)}" + (f" ({rank.place})" if rank.place else "")


def _words(rank: Act, *, several: bool) -> str:
    """Return what a rank does, or ranks do: `waits for a lock`, `have not begun`."""
    words = re.sub(r"^(\w+)s ", r"\1 ", rank.words) if several else rank.words
    return words.replace("has ", "have ", 1) if several and words.startswith("has ") else words
