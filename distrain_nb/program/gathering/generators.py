"""The random generators that the notebook has seeded go on in every rank from where they are."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.settings import Setting
    from distrain_nb.program.notebook.world import World

# Of a module the call that gives its generator's state; `set` in place of `get` sets it.
_STATES = {"random": "getstate()", "numpy.random": "get_state()", "torch": "get_rng_state()"}
_SEEDS = re.compile(r"(\w+\.)*\w*seed\w*|(\w+\.)*enable_full_determinism")


def states(
    settings: Iterable[Setting], roots: Collection[str], world: World
) -> Iterator[tuple[str, Any]]:
    """Yield names such as `random:getstate()` with the states: of generators that settings seed
    alike in all ranks, and that are in these packages or in one that they import."""
    seeded = {
        module
        for setting in settings
        if setting.runs and not is_of_the_world(setting.executed, world)
        for name in setting.names
        if _SEEDS.fullmatch(name)
        for module in _modules(name)
    }
    for module in sorted(m for m in seeded & sys.modules.keys() if _is_brought(m, roots)):
        state = getattr(sys.modules[module], _STATES[module].removesuffix("()"), None)
        if state is not None:
            yield f"{module}:{_STATES[module]}", state()


def _is_brought(module: str, roots: Collection[str]) -> bool:
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root in roots:
        return True
    package = sys.modules.get(root)
    return any(
        type(loaded) is ModuleType and vars(loaded).get(root) is package
        for name, loaded in [*sys.modules.items()]
        if name.partition(".")[0] in roots
    )


def is_of_the_world(executed: Executed, world: World) -> bool:
    """Return whether a statement asks for the world, or reads what knows it."""
    reading = world.asked_by(executed)
    return reading is not None and reading.kind == "world"


def _modules(name: str) -> Iterable[str]:
    """Return the modules whose generators a function seeds: one of another package may seed all."""
    named = [m for m in _STATES if name.startswith(f"{m}.") and not name.startswith("torch.cuda")]
    return named or _STATES
