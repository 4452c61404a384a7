"""Draws from random generators that the notebook seeded by its rank, as each rank seeds its own."""

from __future__ import annotations

import ast
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.module_changes import is_users
from distrain_nb.observed.process import SEEDS
from distrain_nb.program.gathering.resolve import Literal, Needed, Value
from distrain_nb.program.notebook.making import changed_by, root_of
from distrain_nb.program.notebook.seen_reads import is_at
from distrain_nb.program.python.nodes import at_once

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.settings import Setting
    from distrain_nb.program.notebook.world import World

# Of a module the call that gives its generator's state; `set` in place of `get` sets it.
STATES = {"random": "getstate()", "numpy.random": "get_state()", "torch": "get_rng_state()"}


def seeded_last(settings: Iterable[Setting], world: World) -> dict[str, Executed]:
    """Return the statements that last seeded a generator, by the generators' modules."""
    return {generator: executed for executed, generator in _seeds(settings, world)}


def _seeds(settings: Iterable[Setting], world: World) -> list[tuple[Executed, str]]:
    """Return the statements that seeded generators, in order, with the generators' modules."""
    calls = [(s.executed, n) for s in settings if s.runs for n in s.names if SEEDS.fullmatch(n)]
    past, observed = world.history.executed, world.seen.observer.settings.seeded
    calls += [(e, s.name) for s in observed for e in past if is_at(s[:3], e.statement)]
    seeds: list[tuple[Executed, str]] = []
    for executed, name in sorted(calls, key=lambda pair: pair[0].at):
        of_cuda = name.startswith("torch.cuda")
        named = [m for m in STATES if name.startswith(f"{m}.") and not of_cuda]
        # One of another package may seed all generators.
        seeds += [(executed, module) for module in named or STATES]
    return seeds


def is_by_rank(seed: Executed, generator: str, world: World) -> bool:
    """Return whether another rank seeds a generator otherwise, or may: what asked for the rank may
    have asked whether to print."""
    replay = world.seen.replay
    return world.knows_world(seed) and not (replay and replay.seeds_alike(seed, generator))


def drawn(
    needs: Mapping[str, Needed], settings: Iterable[Setting], roots: Collection[str], world: World
) -> Iterator[Finding]:
    """Yield a warning for each generator that was drawn from since the notebook seeded it by its
    rank: the values that may have been drawn are the notebook's, and where these packages have it,
    it begins with its seed in every rank."""
    seeds = _seeds(settings, world)
    if not any(is_by_rank(executed, generator, world) for executed, generator in seeds):
        return
    names = _drawn_names(seeds, world)
    values_by_seed: dict[Executed, dict[str, None]] = {}
    for needed in needs.values():
        name, path = needed.root or needed.name, needed.name
        seed = _seed_of(name, names, world) if isinstance(needed.how, (Literal, Value)) else None
        if seed and not (_is_alike(name, world) or _is_repeated(path, world)):
            values_by_seed.setdefault(seed, {})[f"`{name.replace(':', '.')}`"] = None
    for seed, values in values_by_seed.items():
        message = (
            f"{', '.join(values)} may have been drawn from the generator that"
            f" {seed.statement.where} seeds by the rank. Every rank has the notebook's: draw it in"
            " the cell"
        )
        yield _finding(seed, message, world)
    since = world.seen.observer.settings.drawn_from()
    places = {seed.statement.where for seed in values_by_seed}
    for generator, executed in {g: e for e, g in seeds}.items():
        is_drawn_from = generator in since or not world.saw(executed.statement)
        there = generator.partition(".")[0] in roots and executed.statement.where not in places
        if is_drawn_from and there and is_by_rank(executed, generator, world):
            places.add(executed.statement.where)
            message = (
                f"the generator of `{generator}` is seeded by the rank here, and has been drawn"
                " from since: in every rank it begins with its seed. Seed it in the cell"
            )
            yield _finding(executed, message, world)


def _finding(seed: Executed, message: str, world: World) -> Finding:
    by_package = any(world.seen.asked(seed.statement)) and not world.asks_directly(seed)
    # Packages most often ask whether to print: `seed_everything(42)`.
    severity = Severity.INFO if by_package else Severity.WARNING
    return Finding("capture.measured", severity, seed.statement.where, message)


# -- what may have been drawn ---------------------------------------------------------------------


def _drawn_names(seeds: Iterable[tuple[Executed, str]], world: World) -> dict[str, Executed]:
    """Return the names that may have what was drawn since the rank seeded a generator, with that
    seed: what statements called for it, took from it, or changed by it, in their order."""
    seeding: dict[tuple[int, int], list[str]] = {}
    for executed, generator in seeds:
        seeding.setdefault(executed.at, []).append(generator)
    by_rank: dict[str, Executed] = {}
    seed_by_name: dict[str, Executed] = {}
    for executed in world.history.executed:
        for generator in seeding.get(executed.at, ()):
            by_rank.pop(generator, None)
            if is_by_rank(executed, generator, world):
                by_rank[generator] = executed
        statement = executed.statement
        seed = _draws(executed, by_rank, world)
        seed = seed or next(
            (seed_by_name[n] for n in _reads(executed, world) if n in seed_by_name), None
        )
        for name in statement.binds:
            seed_by_name.pop(name, None)
        if seed and not statement.is_import:
            seed_by_name.update(dict.fromkeys(statement.binds | _changed(executed, world), seed))
    return seed_by_name


def _draws(executed: Executed, by_rank: Mapping[str, Executed], world: World) -> Executed | None:
    """Return the seed by the rank of a generator from which a statement may draw."""
    statement, drawn_by = executed.statement, world.seen.observer.draws.drawn_by
    calls = bool(by_rank) and any(isinstance(n, ast.Call) for n in at_once(statement.node))
    here = drawn_by(statement.label) if world.saw(statement) else {*by_rank}
    return next((by_rank[g] for g in by_rank if calls and g in here), None)


def _reads(executed: Executed, world: World) -> set[str]:
    uses = executed.statement.names(world.history.late_annotations).needs.values()
    return {u.name for u in uses if u.at_once} | {*world.reaches.read_inside(executed.statement)}


def _changed(executed: Executed, world: World) -> set[str]:
    """Return the names whose objects a statement stores something in, or calls something for that
    it gives no name."""
    node = executed.statement.node
    changed = [(root_of(place), method) for place, method in changed_by(at_once(node))]
    stored = {name for name, method in changed if not method}
    called = {name for name, _ in changed}
    if isinstance(node, ast.Expr):
        called |= _reads(executed, world)
    return stored | {name for name in called if _may_keep(world.namespace.get(name))}


def _may_keep(value: Any) -> bool:
    """Return whether an object may keep something of the user's: no package's module or code."""
    if isinstance(value, ModuleType):
        return is_users(value)
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return value.__module__ == "__main__" or is_users(sys.modules.get(value.__module__ or ""))
    return not isinstance(value, (int, float, complex, str, bytes, type(None)))


def _seed_of(name: str, drawn_names: Mapping[str, Executed], world: World) -> Executed | None:
    """Return the seed behind a name; of state of a module the one behind any name of what is the
    module's."""
    module, colon, _ = name.partition(":")
    if not colon:
        return drawn_names.get(name)
    of_module = (n for n in drawn_names if _module_of(world.namespace.get(n)) == module)
    return next(map(drawn_names.__getitem__, of_module), None)


def _module_of(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    code = value if isinstance(value, (type, FunctionType)) else type(value)
    return code.__module__ or ""


def _is_alike(name: str, world: World) -> bool:
    """Return whether rank 1 of 2 had the same by that name when its cells ran again."""
    replay = world.seen.replay
    ran = replay is not None and name in replay.alone.after
    return bool(ran and replay and replay.is_proven(name) and name not in replay.knows)


def _is_repeated(path: str, world: World) -> bool:
    """Return whether every rank sets a part of a module by itself, `module:CFG.lr`."""
    module, _, name = path.partition(":")
    replay = world.seen.replay
    aliases = [n for n, v in world.namespace.items() if v is sys.modules.get(module, n)]
    root = name.partition(".")[0]
    return replay is not None and any(replay.decides(f"{alias}.{root}") for alias in aliases)
