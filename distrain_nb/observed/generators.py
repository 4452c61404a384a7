"""Where the random generators of the process were when a cell began."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any

_OF = {  # what reads a generator's state, and what sets it
    "random": ("getstate", "setstate"),
    "numpy.random": ("get_state", "set_state"),
    "torch": ("get_rng_state", "set_rng_state"),
}


def states() -> dict[str, Any]:
    """Return the states of Python's generator, NumPy's and PyTorch's, if these are imported."""
    return {name: getattr(module, _OF[name][0])() for name, module in _imported()}


def restore(before: dict[str, Any]) -> None:
    """Put the generators where they were."""
    for name, module in _imported():
        if name in before:
            getattr(module, _OF[name][1])(before[name])


def _imported() -> list[tuple[str, Any]]:
    modules = [(name, sys.modules.get(name)) for name in _OF]
    # A module that is being imported lacks its functions.
    return [(name, module) for name, module in modules if hasattr(module, _OF[name][1])]


class Begun:
    """The generators' states at the beginnings of cells, and the seconds that these took, unless
    they imported something. Only of cells that asked: a state is a few kilobytes."""

    def __init__(self) -> None:
        self.states: dict[str, dict[str, Any]] = {}
        self.took: dict[str, float] = {}
        self._now: dict[str, Any] = {}
        self._at, self._modules = 0.0, 0

    def begin(self, label: str) -> None:
        self.states.pop(label, None)
        self.took.pop(label, None)
        self._now, self._at, self._modules = states(), monotonic(), len(sys.modules)

    def end(self, label: str, *, asked: bool) -> None:
        if asked:
            self.states[label] = self._now
            imported = len(sys.modules) != self._modules
            self.took[label] = 0.0 if imported else monotonic() - self._at
        self._now = {}
