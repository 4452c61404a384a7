"""What no statement does again in a rank, or what it does otherwise there."""

from __future__ import annotations

import ast
import gc
import re
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.objects import is_model
from distrain_nb.program.gathering.doubts import SHELL
from distrain_nb.program.gathering.resolve import Literal, Needed, SourceCode, Value
from distrain_nb.program.notebook.history import LEFT_OUT
from distrain_nb.program.notebook.seen_reads import is_at
from distrain_nb.program.python.nodes import at_once
from distrain_nb.worker.plain import plain_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.observed.sites import Site
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.settings import Setting
    from distrain_nb.program.notebook.world import World

_CLOCK = {"time", "time_ns", "now", "utcnow", "today", "uuid1", "uuid4", "token_hex", "mkdtemp"}
_DRAWS = {
    *("random", "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "uniform"),
    *("normal", "standard_normal", "gauss", "integers", "choice", "choices", "sample"),
    *("permutation", "shuffle"),
}
_NUMBER = re.compile(r"(?<![\w.])\d{9,16}(?![\w.])")  # as long as an address


def unrepeated(gathered: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """Yield an error for each value that a magic or a callback of the kernel gave something of the
    world, and a warning for those of statements that failed."""
    cells: dict[str, list[Executed]] = {}
    for executed in world.history.executed if world.seen.watched else ():
        cells.setdefault(executed.statement.label, []).append(executed)
    values = {n.name for n in gathered.values() if isinstance(n.how, (Literal, Value))}
    sites = [(label, site) for label in cells for site in world.seen.observer.sites(label)]
    for label, site in sites:
        at = None if site.beside else _statement_at(site, cells[label])
        text = at.statement.text if at else ""
        if at and (SHELL.match(text) or not (at.failed or text.startswith(LEFT_OUT))):
            continue
        failed = at is not None and at.failed
        by = "a statement that failed" if failed else "a magic or a callback of the kernel"
        for read in [read for read in site.reads if read.direct][:1]:
            for name in sorted(values & site.filled):
                latest = [e.at for e in world.history.of(name)[:1]]
                if latest > [at.at] if at else latest >= [cells[label][0].at]:
                    continue
                values.remove(name)
                message = (
                    f"`{name}` may depend on the world ({read.what}, {read.where}), asked by {by},"
                    " which ranks don't repeat: set it by a statement in a cell"
                )
                severity = Severity.WARNING if failed else Severity.ERROR
                yield Finding("capture.process-bound", severity, label, message)


def unreached(gathered: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """Yield a warning for each name that another rank binds anew, as it passes a statement at which
    the notebook's cell failed."""
    replay = world.seen.replay
    for executed in replay.executed if replay else ():
        if not (replay and executed.failed and replay.goes_on(executed)):
            continue
        for name in sorted(executed.unbound & {needed.name for needed in gathered.values()}):
            if any(latest.at > executed.at for latest in world.history.of(name)[:1]):
                continue
            statement = executed.statement
            message = (
                f"`{name}` is the notebook's in every rank, though {statement.where} failed there"
                f" and doesn't as rank 1 of 2, which goes on and sets `{name}`: set it in a cell"
                " that doesn't fail"
            )
            yield Finding("capture.process-bound", Severity.WARNING, statement.label, message)


def _statement_at(site: Site, cell: list[Executed]) -> Executed | None:
    """Return the statement of a cell that a place is in; of IPython's syntax only lines are
    known."""
    for executed in cell:
        statement = executed.statement
        column = -1 if statement.text.startswith(LEFT_OUT) else site.column
        if is_at((statement.label, site.line, column), statement):
            return executed
    return None


def identities(gathered: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """Yield a warning for each collection that has what `id` gives for an object."""
    numbers: dict[int, str] = {}
    for needed in gathered.values():
        is_collection = isinstance(needed.value, (dict, list, tuple, set, frozenset))
        if is_collection and isinstance(needed.how, (Literal, Value)):
            texts = [t for part in plain_parts(needed.name, needed.value).items() for t in part]
            numbers |= {int(n): needed.name for text in texts for n in _NUMBER.findall(text)}
    if not numbers:
        return
    there = {id(obj) for obj in (*gc.get_objects(), *world.namespace.values())}
    for name in dict.fromkeys(name for number, name in numbers.items() if number in there):
        message = (
            f"`{name}` has the `id` of an object, which is another one in a run: make `{name}` in"
            " the cell"
        )
        yield Finding("capture.lost-part", Severity.WARNING, gathered[name].where[0], message)


def drawn_anew(
    gathered: Mapping[str, Needed], settings: Iterable[Setting], world: World
) -> Iterator[Finding]:
    """Yield a warning for each value that a statement draws or times again in every rank, as it
    also asks for the world. Generators that the notebook has seeded go on from their state."""
    seeded = any("seed" in name for setting in settings for name in setting.names)
    for needed in gathered.values():
        how = needed.how
        if not isinstance(how, SourceCode) or not how.world or is_model(needed.value):
            continue
        for executed in how.chain:
            statement = executed.statement
            asks = any(read.direct for read in world.seen.asked(statement))
            call = _drawing(statement.node, _CLOCK if seeded else _CLOCK | _DRAWS)
            if call and (asks or world.seen.known_to(statement)):
                message = (
                    f"`{needed.name}` is made again in every rank ({statement.where}), where"
                    f" `{call}` gives something else than in the notebook: call that in a"
                    " statement of its own"
                )
                yield Finding("capture.made-again", Severity.WARNING, needed.where[0], message)
                break


def _drawing(node: ast.stmt, names: Collection[str]) -> str:
    """Return the first call in a statement of a function that gives something else each time."""
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):  # which measure
        return ""
    for call in at_once(node):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if name in names:
                return ast.unparse(call)
    return ""
