"""Random generators that no name holds: Python's, NumPy's and PyTorch's.

Where they were when cells began and ended, once a cell has asked for the world: what is drawn after
a seed by the rank, the rank decides too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.clock import undisturbed
from distrain_nb.worker.fingerprint import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

GENERATORS = {  # what reads a generator's state, and what sets it
    "random": ("getstate", "setstate"),
    "numpy.random": ("get_state", "set_state"),
    "torch": ("get_rng_state", "set_rng_state"),
}


def generator_states() -> dict[str, Any]:
    """Return the states of Python's generator, NumPy's and PyTorch's, if these are imported."""
    return {name: getattr(module, GENERATORS[name][0])() for name, module in _with_generators()}


def marks(states: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return what tells whether two states of a generator are one, by the modules; without states
    of the present ones."""
    digests = {}
    for name, state in (generator_states() if states is None else states).items():
        parts = [state.numpy()] if hasattr(state, "numpy") else state
        texts = [part.tobytes().hex() if hasattr(part, "tobytes") else part for part in parts]
        digests[name] = digest(repr(texts))
    return digests


def restore_generators(before: Mapping[str, Any]) -> None:
    """Put the generators where they were."""
    for name, module in _with_generators():
        if name in before:
            getattr(module, GENERATORS[name][1])(before[name])


def _with_generators() -> list[tuple[str, Any]]:
    modules = [(name, sys.modules.get(name)) for name in GENERATORS]
    # A module that is being imported lacks its functions.
    return [(name, module) for name, module in modules if hasattr(module, GENERATORS[name][1])]


class CellDraws:
    """The generators' states at the beginnings of cells, with marks of these and of those at the
    ends, and the seconds that the cells took, unless they imported something. Only of cells that
    asked, and of those that drew after one had: a state is a few kilobytes."""

    def __init__(self) -> None:
        self.states: dict[str, dict[str, Any]] = {}
        self.took: dict[str, float] = {}
        self._marks: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
        self._now: dict[str, Any] = {}
        self._at, self._modules = 0.0, 0

    def begin(self, label: str) -> None:
        """Note that a cell is about to run."""
        for records in (self.states, self.took, self._marks):
            records.pop(label, None)
        self._now, self._at, self._modules = generator_states(), undisturbed(), len(sys.modules)

    def end(self, label: str, *, asked: bool) -> None:
        """Note that the cell has run, and whether it asked for the world."""
        began = marks(self._now) if asked or self._marks else {}
        ended = marks() if began else {}
        if asked or began != ended:
            self.states[label] = self._now
            self._marks[label] = began, ended
            imported = len(sys.modules) != self._modules
            self.took[label] = 0.0 if imported else undisturbed() - self._at
        self._now = {}

    def began(self, label: str) -> Mapping[str, str]:
        """Return marks of the generators as a cell began."""
        return self._marks[label][0] if label in self._marks else {}

    def ended(self, label: str) -> Mapping[str, str]:
        """Return marks of the generators as a cell ended."""
        return self._marks[label][1] if label in self._marks else {}

    def drawn_by(self, label: str) -> set[str]:
        """Return the generators that a cell has drawn from, or seeded."""
        ended = self.ended(label)
        return {name for name, mark in self.began(label).items() if ended.get(name) != mark}
