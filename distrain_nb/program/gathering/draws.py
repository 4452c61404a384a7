"""Draws from random generators that the notebook seeded by its rank, as each rank seeds its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.process import SEEDS
from distrain_nb.program.gathering.resolve import Literal, Needed, Value
from distrain_nb.program.notebook.history import is_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.settings import Setting
    from distrain_nb.program.notebook.world import World

# Of a module the call that gives its generator's state; `set` in place of `get` sets it.
STATES = {"random": "getstate()", "numpy.random": "get_state()", "torch": "get_rng_state()"}


def seeded_last(settings: Iterable[Setting], world: World) -> dict[str, Executed]:
    """Return the statement that last seeded a generator, by the generators' modules."""
    seeds = [(s.executed, n) for s in settings if s.runs for n in s.names if SEEDS.fullmatch(n)]
    past, observed = world.history.executed, world.seen.observer.settings.seeded
    seeds += [(e, s.name) for s in observed for e in past if is_at(s[:3], e.statement)]
    last: dict[str, Executed] = {}
    for executed, name in sorted(seeds, key=lambda pair: pair[0].at):
        of_cuda = name.startswith("torch.cuda")
        named = [m for m in STATES if name.startswith(f"{m}.") and not of_cuda]
        # One of another package may seed all generators.
        last.update(dict.fromkeys(named or STATES, executed))
    return last


def drawn(
    needs: Mapping[str, Needed], settings: Iterable[Setting], roots: Collection[str], world: World
) -> Iterator[Finding]:
    """Yield a warning for each generator that was drawn from since the notebook seeded it by its
    rank: the values that may have been drawn are the notebook's, and where these packages have it,
    it begins with its seed in every rank."""
    since = world.seen.observer.settings.drawn_from()
    values = [n.root or n.name for n in needs.values() if isinstance(n.how, (Literal, Value))]
    places = set[str]()
    for generator, seed in seeded_last(settings, world).items():
        statement = seed.statement
        is_drawn_from = generator in since or not world.saw(statement)
        if not is_drawn_from or not world.knows_world(seed) or statement.where in places:
            continue
        names = [f"`{n}`" for n in dict.fromkeys(values) if _may_be_drawn(n, seed, world)]
        if names:
            message = (
                f"{', '.join(names)}: if this was drawn from the generator that {statement.where}"
                " seeds by the rank, every rank has the notebook's: draw it in the cell"
            )
        elif generator.partition(".")[0] in roots:
            message = (
                f"the generator of `{generator}` is seeded by the rank here, and has been drawn"
                " from since: in every rank it begins with its seed. Seed it in the cell"
            )
        else:
            continue
        places.add(statement.where)
        by_package = any(world.seen.asked(statement)) and not world.asks_directly(seed)
        # Packages most often ask whether to print: `seed_everything(42)`.
        severity = Severity.INFO if by_package else Severity.WARNING
        yield Finding("capture.measured", severity, statement.where, message)


def _may_be_drawn(name: str, seed: Executed, world: World) -> bool:
    """Return whether something was called for a name, or for what it is made of, since a seed."""
    return any(
        executed.at > seed.at and any(isinstance(n, ast.Call) for n in ast.walk(node))
        for executed in world.ancestry.all_makers(name)
        if (node := executed.statement.node)
    )
