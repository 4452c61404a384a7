"""What definitions were given since their statements ran: attributes, and what functions have
cached."""

from __future__ import annotations

from functools import cached_property
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.definitions import OF_CLASSES, is_definition, parts
from distrain_nb.program.gathering.expectation import asking
from distrain_nb.program.gathering.resolve import Needed, SourceCode, Value
from distrain_nb.program.notebook.reach import ASKS_MACHINE
from distrain_nb.program.values.pickling import try_value
from distrain_nb.program.values.shared import CHANGING
from distrain_nb.worker.fingerprint import LIVE
from distrain_nb.worker.rank.caches import CACHE, caches_in
from distrain_nb.worker.rank.expected import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.notebook.world import World
    from distrain_nb.program.values.pickling import Definitions


_METHODS = (FunctionType, BuiltinFunctionType, staticmethod, classmethod, property, cached_property)
_MOST_OF_CACHE = 2**20  # bytes: what is larger was loaded, not changed


def subclasses_of(found: Mapping[str, Needed], definitions: Definitions) -> set[str]:
    """Return the names of the notebook's classes that are made of those which were found."""
    names, visited = set[str](), set[type]()
    waiting = [n.value for n in found.values() if isinstance(n.value, type)]
    while waiting:
        cls = waiting.pop()
        if definitions.owns(cls) and cls not in visited:
            visited.add(cls)
            names.update(path.partition(".")[0] for path in [*definitions.paths(cls)][:1])
            waiting += type.__subclasses__(cls)
    return names


def state_of(
    needed: Needed, where: str, world: World, definitions: Definitions, limit: int
) -> Iterator[Needed | Finding]:
    """Yield the attributes of a definition that its text doesn't give; a finding for those that
    can't travel. Where nobody saw its statement all that are no methods: a rank keeps what is
    equal."""
    assert isinstance(needed.how, SourceCode)
    name, definition = needed.name, needed.value
    statements = [executed.statement for executed in needed.how.chain]
    replay = world.seen.replay
    if not is_definition(definition) or (replay and replay.decides(name)):
        return
    is_class = isinstance(definition, type)
    seen = world.seen.observer.originals.changed(name, definition)
    changes = seen or {}
    if seen is None:  # nobody saw its statement
        plain = ((p, v) for p, v in parts(name, definition) if not isinstance(v, _METHODS))
        given = ((p, v) for p, v in plain if p.rpartition(".")[2] not in OF_CLASSES)
        changes = {path: (value, ("", "", "")) for path, value in given}
    asks = {*asking(needed, world)} if seen is None and changes else set()
    for path, (value, change) in changes.items():
        if path in asks or name in asks:
            continue
        # `A.tags = old` after `old = A.tags`
        attribute = path[len(name) + 1 :]
        bases = definition.__mro__[1:] if type(value) in CHANGING and is_class else ()
        shares = (b.__qualname__ for b in bases if vars(b).get(attribute) is value)
        if base := next(shares, ""):
            message = (
                f"`{path}` is the same {type(value).__name__} as `{base}.{path.rpartition('.')[2]}`"
                f" in the notebook ({statements[0].where}), and would be another one in the run."
                " Set it in the cell"
            )
            yield Finding("capture.not-portable", Severity.ERROR, where, message)
            continue
        trial = try_value(path, value, definitions, limit)
        if trial.problem is None and trial.complete:
            yield Needed(path, value, Value(), (where,), trial, name)
            continue
        part, before, after = change
        is_live = type(value).__module__.partition(".")[0] in LIVE
        # What a wrapper keeps for itself, as that of `jax.jit` does, each rank's own has.
        is_packages = not isinstance(definition, (type, FunctionType)) and attribute[:1] == "_"
        if part and len(statements) == 1 and not (is_live or is_packages):
            why = trial.problem.reason if trial.problem else "is too large to travel"
            message = (
                f"`{part}` is {shown(after)} in the notebook ({statements[0].where}) and"
                f" {shown(before)} in the run, which makes `{name}` again from its text: `{path}`"
                f" {why}. Set it in the cell"
            )
            yield Finding("capture.not-portable", Severity.ERROR, where, message)


def caches_of(
    needed: Needed, where: str, world: World, definitions: Definitions
) -> Iterator[Needed | Finding]:
    """Yield what a definition has cached. Where a function asks the world or the machine, each rank
    computes its own."""
    assert isinstance(needed.how, SourceCode)
    name, chain = needed.name, needed.how.chain
    for path, function, results in caches_in(name, needed.value):
        executed = (
            e
            for e in world.history.executed
            if e.at > chain[0].at and e not in chain and world.reaches.reads(e.statement, name)
        )
        code = function.__code__
        asks = code in world.seen.observer.askers or ASKS_MACHINE.intersection(code.co_names)
        if asks or any(map(world.dependence_of, executed)):
            continue
        key = f"{path}{CACHE}"
        trial = try_value(key, results, definitions, _MOST_OF_CACHE)
        if trial.problem is None and trial.complete:
            yield Needed(key, results, Value(), (where,), trial, name)
        else:
            why = trial.problem.reason if trial.problem else "is too large to travel"
            message = f"what `{path}` has cached {why}: the run computes it again"
            yield Finding("capture.made-again", Severity.INFO, where, message)
