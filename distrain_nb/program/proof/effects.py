"""Calls that a notebook makes for what they change in a package: `csv.field_size_limit(10**8)`.

No name holds that, and a script would make them in every rank. A call that a fork of the kernel can
make, without a file, a process or a connection, is made in the ranks too.
"""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from distrain_nb.program.notebook.deleted import imports_again
from distrain_nb.program.proof.forked import Untried, tried

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.observed import Observer
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.settings import Setting
    from distrain_nb.program.notebook.world import World

_SECONDS = 1.0
# Their calls wait for threads that no fork has, which would take all of these seconds.
_HAVE_THREADS = {"tensorflow", "keras", "jax"}
_Tried = dict[tuple[object, str], bool]
_tried: WeakKeyDictionary[Observer, _Tried] = WeakKeyDictionary()


def with_effects(settings: Iterable[Setting], world: World) -> list[Setting]:
    """Return settings of which also those run again that a fork can make."""
    observer = world.seen.observer
    if observer is None:
        return [*settings]
    results = _tried.setdefault(observer, {})
    return [
        replace(s, runs=True) if s.is_effect and _can_be_made(s, world, results) else s
        for s in settings
    ]


def _can_be_made(setting: Setting, world: World, results: _Tried) -> bool:
    executed = setting.executed
    if {name.partition(".")[0] for name in setting.names} & _HAVE_THREADS & sys.modules.keys():
        return False
    key = executed.at, executed.statement.text
    if key not in results:
        try:
            tried(lambda: _make(executed, world), _SECONDS)
            results[key] = True
        except Untried:
            results[key] = False
    return results[key]


def _make(executed: Executed, world: World) -> None:
    """Make a call once more. It may raise, as the package has already what it registers."""
    names = dict(world.namespace)
    for item in (*imports_again(executed, world.history, names), executed):
        module = ast.Module([item.statement.node], [])
        with suppress(Exception):
            exec(compile(module, "<effect>", "exec"), names)
