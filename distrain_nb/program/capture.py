"""A cell and what it needs from the notebook become a program."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.program.cell_code import _AWAITS, CellCode, read_cell
from distrain_nb.program.frameworks import with_backend
from distrain_nb.program.gathering.arrange import arrange, statements_of
from distrain_nb.program.gathering.assemble import Body, assemble
from distrain_nb.program.gathering.draws import drawn
from distrain_nb.program.gathering.expectation import expectation
from distrain_nb.program.gathering.gather import Gathering
from distrain_nb.program.gathering.later import made_later
from distrain_nb.program.gathering.module_state import modules_in, variables_of_the_world
from distrain_nb.program.gathering.own_names import own_names
from distrain_nb.program.gathering.process_state import process_state
from distrain_nb.program.gathering.ranks import leave_out
from distrain_nb.program.gathering.resolve import Import, Literal, Needed, SourceCode, Value
from distrain_nb.program.gathering.unrepeated import drawn_anew
from distrain_nb.program.notebook.history import history
from distrain_nb.program.notebook.local_modules import follow, reached
from distrain_nb.program.notebook.settings import concerning, settings_findings, settings_of
from distrain_nb.program.program import (
    NO_PROGRAM,
    SYNTAX_ERROR,
    CapturedSource,
    CapturedValue,
    Program,
)
from distrain_nb.program.proof.effects import with_effects
from distrain_nb.program.proof.made import proven
from distrain_nb.program.proof.replay import Replay, replayed
from distrain_nb.program.python.imports import ImportedModule, imports_of
from distrain_nb.program.python.names import futures_in
from distrain_nb.program.python.scopes import bound_names
from distrain_nb.program.python.uncalled_function import needs_arguments, uncalled_function
from distrain_nb.program.requirements import files_of, requirements_of, unknown_modules
from distrain_nb.program.values.data import data_of
from distrain_nb.program.values.tensorflow_values import starts_tensorflow
from distrain_nb.repairs import append_line, write_in_option
from distrain_nb.worker.rank.process_state import TABLE
from distrain_nb.worker.rank.wrapped import SHARDED, gather_first

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from pathlib import Path

    from distrain_nb.program.notebook.cells import Cell, Notebook
    from distrain_nb.program.notebook.history import Executed, ExecutionHistory

LIMIT = 64 * 2**20
_WRAPS = {"FSDP", *(name for _, name in SHARDED)}
_IN_PLACE = "fully_shard"


def capture(
    cell: Cell,
    first_line: int,
    notebook: Notebook,
    *,
    include: Sequence[str] = (),
    require: Sequence[str] = (),
    limit: int = LIMIT,
    results: Sequence[str] = (),
    for_image: bool = False,
) -> Program:
    """Make a program of a cell, from line `first_line` (1-based) on.

    `include` are paths to take along, relative to the notebook's folder or absolute; `require`
    are further requirements; `limit` is how many bytes of values it may take; `results` are names
    that the cell must leave behind; `for_image` says that the program will have the packages of an
    image, rather than those that are installed here. What is wrong is among the program's findings.
    """
    past = history(notebook.cells)
    code = read_cell(cell, first_line, late_annotations=past.late_annotations)
    if any(finding.code == SYNTAX_ERROR for finding in code.findings):
        return replace(NO_PROGRAM, label=cell.label, findings=code.findings)
    asked = _Asked(cell, first_line, notebook, past, code, limit)
    again = replayed(past, notebook.observer)

    def attempt(by_cells: bool) -> tuple[Program, Gathering]:
        gathering = _gathered(
            asked, results, again if isinstance(again, Replay) else None, by_cells
        )
        return _assembled(asked, gathering, include, require, for_image=for_image), gathering

    # Ranks that stay have names of their own, which no fork has.
    return proven(attempt, None if notebook.ranks else again)


@dataclass(frozen=True)
class _Asked:
    """What is captured: a cell, from a line on, with its notebook and the bytes it may take."""

    cell: Cell
    first_line: int
    notebook: Notebook
    past: ExecutionHistory
    code: CellCode
    limit: int


def _gathered(
    asked: _Asked, results: Sequence[str], again: Replay | None, by_cells: bool
) -> Gathering:
    """Find all that a cell needs; `by_cells`: those that asked for the rank run again whole."""
    cell, code, notebook, past = asked.cell, asked.code, asked.notebook, asked.past
    own = own_names(code.tree, code.names, past, notebook.namespace)
    gathering = Gathering(notebook, past, asked.limit, own, again, by_cells)
    gathering.want(code.names.needs.values(), cell.label)
    gathering.read_by_text(code.names, cell.label)
    _want_results(results, code, gathering, cell.label)
    for transformer in notebook.transformers:
        changes = f"`{type(transformer).__name__}` of IPython's `ast_transformers` changes cells"
        message = f"{changes}, but not this one: ranks run its text as it stands"
        gathering.say("ipython-syntax", Severity.WARNING, cell.label, message)
    gathering.run()
    _state(code, gathering)
    gathering.finish()
    _tell_unused(code, gathering)
    _tell_uncalled(code, gathering, results, cell.label)
    return gathering


def _assembled(
    asked: _Asked,
    gathering: Gathering,
    include: Sequence[str],
    require: Sequence[str],
    *,
    for_image: bool,
) -> Program:
    """Write the program of all that was found."""
    cell, code, notebook, past = asked.cell, asked.code, asked.notebook, asked.past
    sent = leave_out(gathering, notebook.ranks) if notebook.ranks else None
    items = arrange(gathering.found, past, gathering.repeated, _cells_of(gathering))
    imported = _imports(code, gathering)
    local = follow(imported, notebook.folder, gathering.world.modules.texts)
    files, file_findings = files_of(local.files, include, notebook.folder)
    data, value_findings = data_of(gathering, items, asked.limit)
    futures = sorted(past.futures | set(futures_in(code.tree.body)))
    flags = compile(code.tree, "", "exec", _AWAITS, dont_inherit=True).co_flags
    body = Body(cell.label, code.text, asked.first_line, bool(flags & inspect.CO_COROUTINE))
    main, segments = assemble(futures, _import_lines(gathering.found), items, body)
    roots = sorted({*local.unknown, *gathering.world.modules.gone_roots})
    used = with_backend(local.imports, main)
    unknown = unknown_modules(roots, imported, cell.label, for_image=for_image)
    expected, exempt = expectation(gathering, modules_in(files))
    later = made_later(gathering, [main, *_texts_of(files)])
    findings = (*code.findings, *gathering.findings, *value_findings, *file_findings, *unknown)
    return Program(
        label=cell.label,
        main=main,
        segments=segments,
        values=tuple(_values(gathering.found)),
        sources=tuple(_sources(gathering.found)),
        files=files,
        requirements=requirements_of(used, notebook.folder),
        required=tuple(require),
        imports=frozenset(i.root for i in used if i.root),
        findings=tuple(sorted(findings, key=lambda f: list(Severity).index(f.severity))),
        data=data,
        expected=expected,
        exempt=tuple(exempt),
        sent=replace(sent, binds=tuple(sorted(code.names.binds))) if sent else None,
        later=later.definitions,
        later_data=later.data,
    )


# -- the cell -------------------------------------------------------------------------------------


def _want_results(results: Sequence[str], code: CellCode, gathering: Gathering, label: str) -> None:
    for name in results:
        ranks = gathering.notebook.ranks
        if name in code.names.binds or (ranks and name in ranks):
            continue
        if name in gathering.notebook.namespace:
            gathering.want_name(name, "--result")
            continue
        there = ", ".join(sorted(code.names.binds)) or "none"
        message = f"the cell does not set `{name}`; the names that it sets are: {there}"
        close = get_close_matches(name, code.names.binds, 1)
        fixes = tuple(write_in_option(name, item) for item in close)
        gathering.say("unknown-result", Severity.ERROR, "--result", message, *fixes)
    for name, line in _sharded(code.tree, results):
        where = f"{label}, line {line}"
        gathering.say("sharded-result", Severity.ERROR, where, f"`{name}`: {gather_first(name)}")


def _sharded(tree: ast.Module, results: Container[str]) -> Iterator[tuple[str, int]]:
    """(name, line) of each result that the cell leaves sharded, by what it does last with it."""
    last: dict[str, tuple[bool, int]] = {}
    for statement in tree.body:
        value = getattr(statement, "value", None)
        called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        called = called.rpartition(".")[2]
        names = bound_names([statement]) if isinstance(statement, ast.Assign) else ()
        last |= dict.fromkeys(names, (called in _WRAPS, statement.lineno))
        if called == _IN_PLACE:
            first = [a.id for a in value.args[:1] if isinstance(a, ast.Name)]  # type: ignore[union-attr]
            last |= dict.fromkeys(first, (True, statement.lineno))
    for name, (is_sharded, line) in last.items():
        if is_sharded and name in results:
            yield name, line


def _state(code: CellCode, gathering: Gathering) -> None:
    """Gather what no name holds: the notebook's settings that concern what the program imports, the
    state of modules beside it, and what these need."""
    world, folder, texts = gathering.world, gathering.notebook.folder, gathering.world.modules.texts
    roots = {i.root for i in follow(_imports(code, gathering), folder, texts).imports}
    every = with_effects(settings_of(world), world)
    remaining = gathering.want_process_state(process_state(every, roots, world))
    settings = concerning(every, roots, world)
    computed = {s.attribute: s.value for s in settings if s.attribute}
    stays = gathering.want_process_state(computed.items())
    settings = [
        replace(s, runs=True, attribute="") if s.attribute in stays else s for s in settings
    ]
    by_value = {n: v.value for n, v in gathering.found.items() if n in TABLE or n in computed}
    gathering.findings += settings_findings(settings, by_value, remaining)
    # Of a variable of the environment it is said that ranks have the notebook's.
    unlike = (s.executed for s in settings if world.rebound_since(s.executed))
    lost = [e for e in unlike if world.seen.sets(e.statement)]
    executed = [s.executed for s in settings if s.runs and s.executed not in lost]
    gathering.findings += variables_of_the_world(executed, by_value, world)
    for item in executed:
        gathering.repeat(item.statement.text.splitlines()[0], item)
    for path, item in _in_modules(gathering.replay):
        gathering.repeat(path, item)
    gathering.run()
    beside = follow(before := _imports(code, gathering), folder, texts).files
    gathering.want_module_state(beside, reached(before, beside))
    gathering.findings += drawn(gathering.found, every, roots, world)
    gathering.findings += drawn_anew(gathering.found, settings, world)


def _cells_of(gathering: Gathering) -> tuple[Executed, ...]:
    """Return the statements of the cells that run again whole."""
    replay = gathering.replay
    return tuple(replay.executed) if replay and gathering.by_cells else ()


def _in_modules(replay: Replay | None) -> Iterator[tuple[str, Executed]]:
    """Yield what a package's module has that another rank has otherwise, with the statement that
    put it there: `builtins.print`, by `builtins.print = print if rank == 0 else quiet`."""
    for path, (_, executed) in replay.knows.items() if replay else ():
        if not path.isidentifier():
            yield path, executed


def _tell_unused(code: CellCode, gathering: Gathering) -> None:
    for name in gathering.notebook.given:
        reads_itself = name in gathering.notebook.optional and name not in code.names.binds
        if name not in gathering.found and not reads_itself:
            why = "sets itself" if name in code.names.binds else "never reads"
            message = f"`{name}` has no effect: it is a name that the cell {why}"
            gathering.say("unused-name", Severity.WARNING, name, message)


def _tell_uncalled(
    code: CellCode, gathering: Gathering, results: Sequence[str], label: str
) -> None:
    """Name a function that nothing calls. Ranks that stay keep it, and a result may be one."""
    function = uncalled_function(code.tree.body)
    if function is None or results or gathering.notebook.ranks is not None:
        return
    message = f"the cell defines `{function.name}` and calls nothing, so its ranks end at once"
    fixes = () if needs_arguments(function) else (append_line(f"{function.name}()"),)
    where = f"{label}, line {function.lineno}"
    gathering.say("nothing-called", Severity.WARNING, where, message, *fixes)


# -- imports and files ----------------------------------------------------------------------------


def _import_lines(needs: Mapping[str, Needed]) -> list[str]:
    lines = [line for n in needs.values() if isinstance(n.how, Import) for line in n.how.statements]
    kinds = ("import", "from", "def")
    return sorted(dict.fromkeys(lines), key=lambda line: (kinds.index(line.split()[0]), line))


def _imports(code: CellCode, gathering: Gathering) -> tuple[ImportedModule, ...]:
    """Return the imports of the program, as far as it is gathered."""
    found = gathering.found
    lines = _import_lines(found)
    repeated = imports_of(ast.parse("\n".join(lines))) if lines else ()
    statements = statements_of((*found.values(), *gathering.repeated))
    executed = [i for statement in statements for i in statement.statement.imports()]
    modules = {m for n in found.values() if n.trial for m in n.trial.seen.modules}
    named = (ImportedModule(m, (), 0) for m in sorted(modules))
    return (*code.imports, *repeated, *executed, *named)


def _texts_of(files: Mapping[str, bytes | Path]) -> Iterator[str]:
    """Yield the modules among files that travel."""
    for name, file in files.items():
        if name.endswith(".py"):
            data = file if isinstance(file, bytes) else file.read_bytes()
            yield data.decode("utf-8", "replace")


# -- values ---------------------------------------------------------------------------------------


def _values(needs: Mapping[str, Needed]) -> Iterator[CapturedValue]:
    for n in needs.values():
        if isinstance(n.how, (Literal, Value)):
            size, text = n.trial.size if n.trial else 0, getattr(n.how, "text", None)
            starts = text is None and starts_tensorflow(n.value)
            yield CapturedValue(n.name, type(n.value).__name__, size, n.where, text, starts)


def _sources(needs: Mapping[str, Needed]) -> Iterator[CapturedSource]:
    for needed in needs.values():
        if isinstance(needed.how, SourceCode):
            kind = "function" if callable(needed.value) else type(needed.value).__name__
            kind = "class" if isinstance(needed.value, type) else kind
            origin = needed.how.chain[-1].statement.where
            yield CapturedSource(needed.name, kind, origin, needed.where)
