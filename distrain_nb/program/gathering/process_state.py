"""What a process has beside its modules: settings, and random generators that go on in every
rank."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.process import is_brought
from distrain_nb.program.gathering.draws import STATES, is_by_rank, seeded_last

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from distrain_nb.program.notebook.settings import Setting
    from distrain_nb.program.notebook.world import World


def process_state(
    settings: Iterable[Setting], roots: Collection[str], world: World
) -> Iterator[tuple[str, Any]]:
    """Yield settings of the process by their names, whatever has made them, but for those that
    statements make again in every rank, as they ask for the world; and names such as
    `random:getstate()` with the states of generators that settings seed, last alike in all ranks.
    They are in these packages or in one that they import."""
    again = [(n, world.knows_world(s.executed)) for s in settings if s.runs for n in s.names]
    last = seeded_last(settings, world)
    seeded = {module for module, seed in last.items() if not is_by_rank(seed, module, world)}
    for module in sorted(m for m in seeded & sys.modules.keys() if is_brought(m, roots)):
        read = getattr(sys.modules[module], STATES[module].removesuffix("()"), None)
        if read is not None:
            yield f"{module}:{STATES[module]}", read()
    state = world.seen.observer.settings
    yield from state.changed(roots, [n for n, of_world in again if of_world])
