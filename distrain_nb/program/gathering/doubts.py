"""What may be, or is, otherwise in a run than in the notebook: told once all of it is known."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.commands import asked_by_command
from distrain_nb.program.gathering.expectation import asking
from distrain_nb.program.gathering.resolve import Literal, Needed, SourceCode, Value
from distrain_nb.program.notebook.seen_reads import is_at
from distrain_nb.worker.fingerprint import text_of
from distrain_nb.worker.rank.expected import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from distrain_nb.observed.changes import PartChange
    from distrain_nb.observed.sites import SeenRead
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.world import World
    from distrain_nb.program.python.reads import ByText

    _MadeAgain = Iterable[tuple[Needed, Executed]]

SHELL = re.compile(r"pass  # (?:(\w+) *= *(?:!|%sx\b)|%%\w.*? --out[ =](\w+))")
_BEFORE = (
    "ranks get the notebook's values of what was made before the extension watched (before"
    " `%load_ext distrain_nb`, or with `%distrain config observe=off`). If one depends on the rank"
    " or world, run its cell again: "
)
_IN_SCRIPT = (
    "a script isn't watched. Ranks get its values, except where its text asks for the rank or"
    " world: "
)
_BY_SHELL = (
    "ranks get what a command gave the notebook, whatever it asked about the rank or world: "
)


# -- statements that run again with other values --------------------------------------------------


def remade_statements(needs: Iterable[Needed]) -> Iterator[tuple[Needed, Executed]]:
    """Yield what is made again, with each of its statements."""
    for needed in needs:
        for executed in needed.how.chain if isinstance(needed.how, SourceCode) else ():
            yield needed, executed


def rebound(
    needs: Mapping[str, Needed], without_name: Sequence[Needed], world: World
) -> Iterator[Finding]:
    """Yield a finding for each name that a statement saw and that another one has set since; also
    for statements that give no name.

    What must be made again, because it depends on the world, must be made of the same.
    """
    made_again = [*remade_statements((*needs.values(), *filter(_knows_world, without_name)))]
    yield from _of_threads(made_again, world)
    yield from _of_another_world(made_again, world)
    repeated = {executed.at for _, executed in made_again}
    for needed, executed in made_again:
        knows_world, statement = _knows_world(needed), executed.statement
        compared = not knows_world and needed.name not in {*asking(needed, world)}
        # What is compared at the start is refused there, if it makes a difference.
        severity = Severity.WARNING if compared else Severity.ERROR
        way = "" if compared else f": run {statement.where} again, or move it into the cell"
        again = f"`{needed.name}` is made again with the present"
        for variable in sorted(world.changed_variables(statement) - world.seen.sets(statement)):
            message = f"{again} os.environ[{variable!r}], which has changed since{way}"
            yield Finding("capture.rebound", severity, statement.where, message)
        same = world.seen.read_then(statement) if knows_world else {}
        # What functions read which it calls counts where nothing else would tell.
        inside = (
            {*(same or world.reaches.read_inside(executed.statement))} if knows_world else set()
        )
        inside -= {*statement.binds, "get_ipython"}  # by which IPython runs `%time`
        lines = dict.fromkeys(sorted(inside), statement.line)
        uses = statement.names(world.history.late_annotations).needs.values()
        lines |= {use.name: use.line for use in uses if use.at_once}
        for read, line in lines.items():
            present = needs.get(read)  # only what it is made of runs before it
            chain = present.how.chain if present and isinstance(present.how, SourceCode) else ()
            runs = {e.at for e in chain} if present else repeated
            since = _set_since(read, executed, runs, same.get(read), world)
            if read != needed.name and since:
                message = f"{again} `{read}`, which {since} has set since{way}"
                where = f"{statement.label}, line {line}"
                yield Finding("capture.rebound", severity, where, message)


def _knows_world(needed: Needed) -> bool:
    return isinstance(needed.how, SourceCode) and needed.how.world


def _of_threads(again: _MadeAgain, world: World) -> Iterator[Finding]:
    """Refuse what a thread made of the world beside the statement that had started it: the ranks
    would start it, and wait for it, at other times."""
    reads: dict[SeenRead, Needed] = {}
    for needed, executed in again:
        if read := world.seen.beside(executed.statement):
            reads.setdefault(read, needed)
    for read, needed in reads.items():
        message = (
            f"`{needed.name}` depends on the world ({read.what}, {read.where}), asked by a thread"
            " or process that went on beside other statements: ranks can't make it again. Start it"
            " and wait for it in one function, or in the cell"
        )
        yield Finding("capture.thread", Severity.ERROR, needed.where[0], message)


def _of_another_world(again: _MadeAgain, world: World) -> Iterator[Finding]:
    """Refuse what a statement made of names that knew the world then, and are others now."""
    for needed, executed in again:
        where = executed.statement.where
        if gone := world.rebound_since(executed) - executed.statement.binds:
            message = (
                f"`{needed.name}` was made of `{min(gone)}` ({where}), which knew the world and has"
                f" been set since: ranks can't make it again. Run {where} again, or move it into"
                " the cell"
            )
            yield Finding("capture.rebound", Severity.ERROR, needed.where[0], message)


def _set_since(
    name: str,
    executed: Executed,
    repeated: Collection[tuple[int, int]],
    is_same: Callable[[object], bool] | None,
    world: World,
) -> str:
    """Return what has set a name to something else since; empty for nothing, or if both run again.
    `is_same` tells of what was seen to be read; else texts do."""
    later = next((p for p in world.history.of(name) if p.at > executed.at), None)
    seen = next(iter(world.history.of(name, before=executed.at)), None)
    value = world.namespace.get(name)
    if (seen and seen.at in repeated) or (is_same is not None and is_same(value)):
        return ""
    alike = seen and later and seen.statement.gives(name) == later.statement.gives(name)
    if alike and (is_same is None or text_of(value) is None):  # `x += 1` twice gives another number
        return ""
    if later is None:
        return "`exec`, `globals()` or a function" if is_same else ""
    if seen is None and is_same is None and later.statement.is_import:
        return ""
    return later.statement.where


# -- what nobody saw ------------------------------------------------------------------------------


def unseen(needs: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """Yield a finding for the values that statements made before the extension was there, and one
    for those that shell commands gave; refuse those of commands that name a launcher's variable, as
    no rank repeats them."""
    values = [n.name for n in needs.values() if isinstance(n.how, (Literal, Value))]
    before = [(name, made) for name in values for made in _made_unseen(name, world)]
    shells = {name: p for p in world.history.executed for name in _bound_by_shell(p, world)}
    latest = {name: made[0].at for name in shells if (made := world.history.of(name))}
    by_shell = [
        (n, shells[n]) for n in values if n in shells and shells[n].at >= latest.get(n, (0, 0))
    ]
    for name, executed in by_shell:
        line = executed.statement
        if asked := asked_by_command(line.text) or min(world.seen.known_to(line), default=""):
            message = (
                f"`{name}` depends on the world ({asked}, {line.where}), asked by a shell"
                " command, which ranks don't repeat: use subprocess.run([...])"
            )
            yield Finding("capture.process-bound", Severity.ERROR, line.where, message)
    made_so = _BEFORE if world.seen.watched else _IN_SCRIPT
    for message, names in ((made_so, before), (_BY_SHELL, by_shell)):
        if names:
            lines = ", ".join(f"`{name}` ({made.statement.where})" for name, made in names)
            yield Finding("capture.unseen", Severity.INFO, "", message + lines)


def told_by_files(needs: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """Yield a warning for each value that was read from a file which a statement had written that
    knew the world, and that didn't train: every rank has what the notebook's rank wrote."""
    reads = world.seen.observer.files.told
    values = [n for n in needs.values() if reads and isinstance(n.how, (Literal, Value))]
    for needed in values:
        behind = [executed.statement for executed in world.ancestry.all_makers(needed.name)]
        for read in (r for r in reads if any(is_at(r[:3], statement) for statement in behind)):
            writing = [e for e in world.history.executed if is_at(read.written_at, e.statement)]
            if any(world.makings.uses(executed.statement) for executed in writing):
                continue
            message = (
                f"`{needed.name}` was read from {Path(read.file).name} ({read.label}, line"
                f" {read.line}), which {read.written_at[0]}, line {read.written_at[1]} wrote while"
                " it knew the world: every rank has what the notebook wrote. Read it in the cell"
            )
            yield Finding("capture.unseen", Severity.WARNING, needed.where[0], message)
            break


def _made_unseen(name: str, world: World) -> list[Executed]:
    making = world.makings.of(name)
    chain = making.chain if making else ()
    return [p for p in chain if not world.saw(p.statement) and _calls(p.statement.node)][:1]


def _bound_by_shell(executed: Executed, world: World) -> Collection[str]:
    if shell := SHELL.match(executed.statement.text):
        return [shell[1] or shell[2]]
    starts = any(site.starts for site in world.seen.sites(executed.statement))
    return executed.statement.binds if starts else ()


def _calls(node: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))


# -- names that code makes at run time ------------------------------------------------------------


def by_text(
    readings: Iterable[tuple[ByText, str]],
    found: Collection[str],
    known: Collection[str],
    namespace: Mapping[str, Any],
) -> Iterator[Finding]:
    """Yield a warning for each place that reads names by text, where the run lacks some: it has
    those in `found`, and `known` are bound otherwise."""
    lacks = sorted(n for n, v in namespace.items() if n not in known and _is_own(n, v))
    for reading, label in readings if lacks else ():
        message = (
            f"`{reading.code}` may read names by text, which are not looked for: the run has"
            f" {_listed(sorted(found))} of the notebook's names and lacks {_listed(lacks)};"
            " it gets one by a line that names it"
        )
        where = f"{label}, line {reading.line}"
        yield Finding("capture.names-by-text", Severity.WARNING, where, message)


def _listed(names: Sequence[str], shown: int = 12) -> str:
    """Return names for a sentence, and how many more there are."""
    first = ", ".join(f"`{name}`" for name in names[:shown]) or "none"
    return f"{first} and {len(names) - shown} more" if len(names) > shown else first


def _is_own(name: str, value: Any) -> bool:
    imported = callable(value) and getattr(value, "__module__", "") != "__main__"
    return not (name.startswith("_") or isinstance(value, ModuleType) or imported)


# -- changes that no statement makes which runs again ----------------------------------------------


def lost(needs: Mapping[str, Needed], world: World) -> Iterator[Finding]:
    """Yield an error for each object that is made again without a change that was seen."""
    for needed in needs.values():
        changes = world.seen.observer.changes.of(needed.name) if _knows_world(needed) else ()
        for change in [c for c in changes if _is_lost(c, needed, world)][:1]:
            line = f", line {change.line}" if change.line > 0 else ""
            where = f"{change.label}{line}"
            message = (
                f"`{change.path}` is {shown(change.after)} in the notebook ({where}) and"
                f" {shown(change.before)} in the run, where `{needed.name}` is"
                " made again, as it knows the world: set it in the cell, or by a statement that"
                " names it"
            )
            yield Finding("capture.process-bound", Severity.ERROR, needed.where[0], message)


def _is_lost(change: PartChange, needed: Needed, world: World) -> bool:
    assert isinstance(needed.how, SourceCode)
    how = needed.how
    if any(is_at(change[:3], executed.statement) for executed in how.chain):
        return False
    if change.line < 0:  # a hook's, or what a package kept: no statement does it again
        cell = (e.statement for e in world.history.executed if e.statement.label == change.label)
        return not any(map(world.makings.uses, cell))
    by = [e for e in world.history.executed if is_at(change[:3], e.statement)]
    if not by:  # a magic has run the cell, of which statements are known by their cell alone
        return all(executed.statement.label != change.label for executed in how.chain)
    return not any(world.makings.uses(executed.statement) for executed in by)
