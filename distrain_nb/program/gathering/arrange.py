"""The statements and values of a program that come before the cell, in an order that works."""

from __future__ import annotations

import ast
import heapq
import itertools
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.program.gathering.resolve import Import, Literal, Needed, SourceCode, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from distrain_nb.program.notebook.history import Executed, ExecutionHistory

Key = tuple[int, int] | str
Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class PreludeItem:
    """A statement of the notebook, or the line that gives a value its name, or a `model` its
    weights. `imports` are lines that stand behind one that sets what they import."""

    name: str
    executed: Executed | None = None
    literal: str | None = None
    model: str = ""
    imports: tuple[str, ...] = ()


def arrange(
    needs: Mapping[str, Needed],
    history: ExecutionHistory,
    repeated: Iterable[Needed] = (),
    cells: Iterable[Executed] = (),
) -> list[PreludeItem]:
    """Sort what was found: as in the notebook, and each item behind what it needs.

    `repeated` is what statements set that give no name; `cells` are the statements of cells that
    run again whole, and read what they bind themselves.
    """
    settings = (item for needed in repeated for item in _items(needed))
    items = {key: replace(item, name="") for key, item in settings}
    given = _items_by_name(needs, items, cells)
    for path, names in _imported_from(needs).items():
        lines = [line for name in names for line in _lines(needs[name])]
        items[path] = replace(items[path], imports=tuple(lines))
        for name in names:
            given.setdefault(name, []).append(path)
    inside = {n.name: n.root for n in needs.values() if n.root}
    made = {name: [*given.get(root, ())] for name, root in inside.items()}
    later_given: dict[str, list[Key]] = {}
    for name, root in inside.items():  # what is made of a model is made of the one with its weights
        (given if needs[name].model else later_given).setdefault(root, []).append(name)
    late = {needed.name for needed in needs.values() if needed.late}
    bound = {key: history.of(key)[:1] for key in items if isinstance(key, str)}
    places = {key: made[0].at if made else (-1, 0) for key, made in bound.items()}
    keys = sorted(items, key=lambda k: (k in late, places[k] if isinstance(k, str) else k))
    before: dict[Key, set[Key]] = {}
    sometime: dict[Key, set[Key]] = {}
    for key in keys:
        at_once, later = _needs(items[key], needs, history)
        before[key] = {d for name in at_once for d in _seen(key, given.get(name, ()))} - {key}
        sometime[key] = {d for name in later for d in given.get(name, ())} - {key}
        sometime[key] |= {d for name in at_once | later for d in later_given.get(name, ())} - {key}
    for name, of_root in made.items():
        before[name].update(of_root)
        outer = itertools.accumulate(name.split(".")[:-1], "{}.{}".format)
        before[name].update(path for path in outer if path in made)  # `C.me` before `C.me.rank`
    for needed in needs.values():  # statements that make one object together stay in their order
        chain = needed.how.chain if isinstance(needed.how, SourceCode) else ()
        for one, other in itertools.pairwise([executed.at for executed in chain]):
            before[other].add(one)
            before[one].discard(other)
    for key, item in items.items():  # a value stands behind a statement that also binds its name
        for name in item.executed.statement.binds & items.keys() if item.executed else ():
            if name not in before[key]:
                before[name].add(key)
    return [items[key] for key in ordered(keys, before, sometime)]


def statements_of(needed: Iterable[Needed]) -> list[Executed]:
    """Return the statements that the program runs for what was found, in the notebook's order."""
    items = (item for part in needed for _, item in _items(part))
    by_place = {item.executed.at: item.executed for item in items if item.executed}
    return [by_place[at] for at in sorted(by_place)]


def _items_by_name(
    needs: Mapping[str, Needed], items: dict[Key, PreludeItem], cells: Iterable[Executed]
) -> dict[str, list[Key]]:
    """Return the items that give each name, which all are added to *items*."""
    by_name: dict[str, list[Key]] = {}
    for needed in needs.values():
        for key, item in _items(needed):
            items.setdefault(key, item)
            by_name.setdefault(needed.name, []).append(key)
    for executed in cells:
        for name in executed.statement.binds if executed.at in items else ():
            by_name.setdefault(name, []).append(executed.at)
    return by_name


def _imported_from(needs: Mapping[str, Needed]) -> dict[str, list[str]]:
    """Return the names that the notebook imported after it had set the attribute of their module,
    by the attribute's path: `config:LR`. Programs import before they set what modules have."""
    names: dict[str, list[str]] = {}
    for needed in needs.values():
        for line in _lines(needed):
            (node,) = ast.parse(line).body
            if isinstance(node, ast.ImportFrom) and len(node.names) == 1:
                path = f"{node.module}:{node.names[0].name}"
                if path in needs and needs[path].value is needed.value:
                    names.setdefault(path, []).append(needed.name)
    return names


def _lines(needed: Needed) -> tuple[str, ...]:
    return needed.how.statements if isinstance(needed.how, Import) else ()


def _seen(key: Key, given: Iterable[Key]) -> set[Key]:
    """Of the items that give a name, those that stood before this one in the notebook, if any."""
    if isinstance(key, str):
        return set(given)
    return {d for d in given if not isinstance(d, str) and d < key} or set(given)


def _items(needed: Needed) -> Iterable[tuple[Key, PreludeItem]]:
    if isinstance(needed.how, SourceCode):
        return [(executed.at, PreludeItem(needed.name, executed)) for executed in needed.how.chain]
    if isinstance(needed.how, Literal):
        return [(needed.name, PreludeItem(needed.name, literal=needed.how.text))]
    if isinstance(needed.how, Value):
        first = [(executed.at, PreludeItem(needed.name, executed)) for executed in needed.first]
        return [*first, (needed.name, PreludeItem(needed.name, model=needed.model))]
    return []


def _needs(
    item: PreludeItem, others: Mapping[str, Needed], history: ExecutionHistory
) -> tuple[set[str], set[str]]:
    """Return names that an item needs when it runs, and those that it needs when it is called."""
    if item.executed is not None:
        needs = item.executed.statement.names(history.late_annotations).needs.values()
        at_once = {use.name for use in needs if use.at_once} - {item.name}
        return at_once, {use.name for use in needs if not use.at_once}
    trial = others[item.name].trial
    return (trial.seen.names, trial.seen.later) if trial else (set(), set())


# -- an order in which each stands behind what it needs --------------------------------------------


def ordered(
    keys: Sequence[Item],
    before: Mapping[Item, Iterable[Item]],
    sometime: Mapping[Item, Iterable[Item]],
) -> list[Item]:
    """Sort keys so that each stands behind what it needs; among equals their order stays.

    `before` must hold, with all that this needs in turn. `sometime` (what the bodies of functions
    read) holds too, except among functions that call each other.
    """
    rank = {key: position for position, key in enumerate(keys)}
    at_once = {k: {d for d in before.get(k, ()) if d in rank and d != k} for k in keys}
    later = {k: {d for d in sometime.get(k, ()) if d in rank and d != k} for k in keys}
    must = {k: _reached(at_once[k], at_once, later) - {k} for k in keys}
    waiting = {k: must[k] | later[k] for k in keys}
    users: dict[Item, list[Item]] = {}
    for key, needs in waiting.items():
        for need in needs:
            users.setdefault(need, []).append(key)
    ready = [(rank[k], k) for k, needs in waiting.items() if not needs]
    heapq.heapify(ready)
    result: list[Item] = []
    while waiting:
        if ready:
            key = heapq.heappop(ready)[1]
        else:  # all wait for each other: the first whose needs are there as far as it goes
            free = (k for needs in (must, at_once) for k in waiting if needs[k].isdisjoint(waiting))
            key = next(free, next(iter(waiting)))
        del waiting[key]
        result.append(key)
        for user in users.get(key, ()):
            if user in waiting:
                waiting[user].discard(key)
                if not waiting[user]:
                    heapq.heappush(ready, (rank[user], user))
    return result


def _reached(start: Iterable[Item], *edges: Mapping[Item, set[Item]]) -> set[Item]:
    reached: set[Item] = set()
    todo = list(start)
    while todo:
        key = todo.pop()
        if key not in reached:
            reached.add(key)
            todo += [need for needs in edges for need in needs[key]]
    return reached
