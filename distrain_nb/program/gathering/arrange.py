"""The pieces of a program that stand before the cell, in an order that works."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.program.gathering.order import ordered
from distrain_nb.program.gathering.resolve import Literal, Source, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from distrain_nb.program.gathering.needed import Needed
    from distrain_nb.program.notebook.history import History, Placed

Key = tuple[int, int] | str


@dataclass(frozen=True)
class Piece:
    """A statement of the notebook, or the line that gives a value its name."""

    name: str
    placed: Placed | None = None
    literal: str | None = None


def arrange(
    found: Mapping[str, Needed], history: History, settings: Iterable[Placed] = ()
) -> list[Piece]:
    """Sort what was found: as in the notebook, and each piece behind what it needs.

    `settings` are statements that give no name.
    """
    pieces: dict[Key, Piece] = {placed.at: Piece("", placed) for placed in settings}
    given: dict[str, list[Key]] = {}  # name: the pieces that give it
    for needed in found.values():
        for key, piece in _pieces(needed):
            pieces.setdefault(key, piece)
            given.setdefault(needed.name, []).append(key)
    keys = sorted(pieces, key=lambda k: _position(k, history))
    before: dict[Key, set[Key]] = {}
    sometime: dict[Key, set[Key]] = {}
    for key in keys:
        at_once, later = _needs(pieces[key], found, history)
        before[key] = {d for name in at_once for d in _seen(key, given.get(name, ()))} - {key}
        sometime[key] = {d for name in later for d in given.get(name, ())} - {key}
    _keep_chains(found, before)
    _keep_values(pieces, before)
    return [pieces[key] for key in ordered(keys, before, sometime)]


def _seen(key: Key, given: Iterable[Key]) -> set[Key]:
    """Of the pieces that give a name, those that stood before this one in the notebook, if any."""
    if isinstance(key, str):
        return set(given)
    return {d for d in given if not isinstance(d, str) and d < key} or set(given)


def _pieces(needed: Needed) -> Iterable[tuple[Key, Piece]]:
    if isinstance(needed.how, Source):
        return [(placed.at, Piece(needed.name, placed)) for placed in needed.how.chain]
    if isinstance(needed.how, Literal):
        return [(needed.name, Piece(needed.name, literal=needed.how.text))]
    if isinstance(needed.how, Value):
        return [(needed.name, Piece(needed.name))]
    return []


def _position(key: Key, history: History) -> tuple[int, int]:
    if not isinstance(key, str):
        return key
    latest = history.of(key)
    return latest[0].at if latest else (-1, 0)


def _needs(
    piece: Piece, found: Mapping[str, Needed], history: History
) -> tuple[set[str], set[str]]:
    """Names that a piece needs when it runs, and those that it needs when it is called."""
    if piece.placed is not None:
        needs = piece.placed.statement.names(history.late_annotations).needs.values()
        at_once = {use.name for use in needs if use.at_once} - {piece.name}
        return at_once, {use.name for use in needs if not use.at_once}
    trial = found[piece.name].trial
    return (trial.seen.names if trial else set()), set()


def _keep_chains(found: Mapping[str, Needed], before: dict[Key, set[Key]]) -> None:
    """Statements that make one object together stay in their order."""
    for needed in found.values():
        if isinstance(needed.how, Source):
            chain = [placed.at for placed in needed.how.chain]
            for earlier, later in itertools.pairwise(chain):
                before[later].add(earlier)
                before[earlier].discard(later)


def _keep_values(pieces: Mapping[Key, Piece], before: dict[Key, set[Key]]) -> None:
    """A value comes behind a statement that would bind its name by the way."""
    for key, piece in pieces.items():
        if piece.placed is None:
            continue
        for name in piece.placed.statement.binds:
            if name in pieces and name not in before[key]:
                before[name].add(key)
