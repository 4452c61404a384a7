"""What modules beside the notebook have that their files do not surely give: it travels too."""

from __future__ import annotations

import ast
import inspect
import sys
from operator import itemgetter
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.frames import run_by, stored_by
from distrain_nb.observed.module_changes import may_set
from distrain_nb.program.gathering.changed_objects import change_of
from distrain_nb.program.gathering.edited import edited, functions_of
from distrain_nb.program.gathering.remake import asks_anew, is_tool
from distrain_nb.program.gathering.resolve import COMPUTED, evaluated, is_literal
from distrain_nb.program.notebook.making import changed_by
from distrain_nb.program.notebook.reach import ASKS_MACHINE
from distrain_nb.program.notebook.seen_reads import is_at
from distrain_nb.program.python.scopes import bound_names
from distrain_nb.program.values.origins import attributes
from distrain_nb.program.values.shared import CHANGING
from distrain_nb.worker.fingerprint import has_identity
from distrain_nb.worker.rank.caches import CACHE, caches_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.local_modules import OwnModule
    from distrain_nb.program.notebook.world import World


def modules_in(files: Iterable[str]) -> set[str]:
    """Return the names of the modules that travel as files."""
    names = {f[:-3].replace("/", ".") for f in files if f.endswith(".py")}
    return {name.removesuffix(".__init__") for name in names}


def module_state(files: Iterable[str], world: World) -> Iterator[tuple[str, Any]]:
    """Yield names such as `module:CFG.lr`, with what they stand for."""
    modules = [(name, sys.modules.get(name), world.modules.of(name)) for name in modules_in(files)]
    statements = [e.statement for e in world.history.executed] if modules else []
    asked = any(not world.saw(s) or [*world.seen.asked(s)] for s in statements)
    state = dict[str, Any]()
    for name, module, own in sorted(modules, key=itemgetter(0)):
        if module is not None and own is not None:
            parts = _of_module(module, own, world, asked=asked)
            state.update({f"{name}:{path}": value for path, value in parts})
    yield from state.items()
    shared = {id(value) for value in state.values() if has_identity(value)}
    for name, module, _ in modules:
        for path, value in _sharing(module, shared) if module else ():
            if f"{name}:{path}" not in state:
                yield f"{name}:{path}", value


def _sharing(module: ModuleType, shared: Collection[int]) -> Iterator[tuple[str, Any]]:
    """Yield what of a module is one of the shared objects: names, as imports give them, and the
    defaults of functions."""
    for name, value in [*vars(module).items()]:
        if id(value) in shared:
            yield name, value
    for path, function in functions_of(module):
        for attribute in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, attribute) or ()
            held = defaults.values() if isinstance(defaults, dict) else defaults
            if any(id(default) in shared for default in held):
                yield f"{path}.{attribute}", defaults


def _of_module(
    module: ModuleType, module_code: OwnModule, world: World, *, asked: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a module that its file does not surely give. What functions have cached is
    left out if somebody `asked` for the world: it may be an answer."""
    since = world.seen.observer.modules.since_import(module.__name__)
    yield from world.seen.observer.modules.imported.set_since(module.__name__)
    for name, value in list(vars(module).items()):
        executed = module_code.history.of(name)
        bound = [e.statement for e in executed]
        node = bound[0].node if bound else None
        if name.startswith("__") or isinstance(value, ModuleType):
            continue
        if is_tool(value) and not _is_written(executed):
            continue
        is_set = since(name) == "set"
        if node and (bound[0].is_import or (asks_anew(executed[0], world) and not is_set)):
            continue
        for path, function, results in caches_in(name, value):
            asks = asked or ASKS_MACHINE.intersection(function.__code__.co_names)
            if function.__module__ == module.__name__ and not asks:
                yield f"{path}{CACHE}", results
        made_here = isinstance(value, (type, FunctionType)) and value.__module__ == module.__name__
        if made_here and isinstance(value, type) and isinstance(node, ast.ClassDef):
            for attribute, part in _of_class(value, node):
                path = f"{name}.{attribute}"
                if since(path) == "set" or not _is_by_rank(
                    module_code, name, attribute, node, world
                ):
                    yield path, part
            continue
        is_lambda = isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
        defines = is_lambda or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if (made_here and defines) or (len(bound) == 1 and _writes(node, value)):
            continue
        if is_set or not world.dependence(name, module_code):
            yield name, value


def _is_by_rank(
    module_code: OwnModule, name: str, attribute: str, node: ast.ClassDef, world: World
) -> bool:
    """Return whether each rank sets a class's attribute by itself: the part of the class that sets
    it asks for the world, or without one the class as a whole, or a statement that fills it."""
    parts = [part for part in node.body if bound_names([part]) == {attribute}]
    others = [
        node,
        *(executed.statement.node for executed in world.ancestry.filling(module_code, name)),
    ]
    return any(world.part_knows_world(part, module_code) for part in parts or others)


def _of_class(cls: type, node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that the class's statement does not surely give."""
    for attribute, value in attributes(cls):
        function = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        function = inspect.unwrap(function) if callable(function) else None
        qualified = getattr(function, "__qualname__", "")
        written = [part for part in node.body if bound_names([part]) == {attribute}]
        is_text = qualified == f"{cls.__qualname__}.{attribute}" or any(
            _writes(part, value) for part in written
        )
        if attribute in vars(cls) and not (is_text or attribute.startswith("__")):
            yield attribute, value


def _writes(node: ast.stmt | None, value: Any) -> bool:
    """Return whether a statement writes a value out, which nothing else can share."""
    if isinstance(value, CHANGING):
        return False
    written = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    return written is not None and is_literal(written, value)


# -- state of the world that the kernel lives in -------------------------------------------------


def from_the_world(
    modules: Collection[str], world: World
) -> tuple[dict[str, Executed], list[Finding]]:
    """Return the state of modules that a statement set by what knows the world, `module:LR`, with
    that statement, where it only sets this, so that every rank can set its own; refuse all other:
    every rank would get the kernel's value, that of a world of one. What statements changed was
    seen; where nobody saw them, their texts tell."""
    again: dict[str, Executed] = {}
    refused = dict[tuple[str, str], Finding]()
    seen = [
        (change.module, change.path.removeprefix("len(").rstrip(")").partition("[")[0], executed)
        for change in world.seen.observer.modules.changes(modules)
        for executed in world.history.executed
        if is_at(change[:3], executed.statement)
    ]
    for module, inner, executed in (*_unseen(modules, world), *seen):
        dependence, where = world.dependence_of(executed), executed.statement.where
        if dependence is None or dependence.kind != "world":
            continue
        set_here = _set_alone(executed, module, world)
        path = next((p for p in set_here if f"{inner}.".startswith(f"{p}.")), "")
        later = [e for e in world.history.executed if e.at > executed.at]
        since = [e for e in later if _may_set(e.statement.node, path, module, world)]
        if path and since and path in _set_alone(since[-1], module, world):
            continue  # by a statement that is looked at itself, or knows nothing of the world
        if path and not since:
            again[f"{module}:{path}"] = executed
            continue
        message = (
            f"`{module}.{inner}` has the notebook's value in every rank, though"
            f" {where} sets it by what knows `{dependence.what}`"
            f" ({dependence.where}). Move that line into the cell"
        )
        refused[module, inner] = Finding("capture.not-portable", Severity.ERROR, module, message)
    return again, [*refused.values(), *_changed_in_parts(modules, world), *edited(modules, world)]


def _set_alone(executed: Executed, module: str, world: World) -> set[str]:
    """Return the paths below a module that a statement sets, if it does nothing else and reads
    nothing of modules beside the notebook, so that it can be made again at any time."""
    node: Any = executed.statement.node
    targets, value = getattr(node, "targets", [getattr(node, "target", None)]), node
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) > 2:
        targets, value = [place for place, _ in changed_by([node.value])], node.value
        value = value.args[2] if ast.unparse(value.func) == "setattr" else None
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        value = node.value
    else:
        return set()
    paths = {_path_in(target, module, world) for target in targets}
    return paths if "" not in paths and value and not world.reaches.reads_modules(value) else set()


def _path_in(node: ast.expr, module: str, world: World) -> str:
    """Return the path below a module of an attribute, `CFG.lr` of `conf.CFG.lr`; else nothing."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    root = world.namespace.get(node.id) if isinstance(node, ast.Name) else None
    if root is sys.modules[module]:
        return ".".join(names)
    parts = vars(sys.modules[module]).items() if isinstance(root, (type, FunctionType)) else ()
    return next((".".join((n, *names)) for n, part in parts if names and part is root), "")


def _may_set(node: ast.stmt, path: str, module: str, world: World) -> bool:
    """Return whether code that runs with a statement may set what has a path in a module."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    code = compile(ast.Module([node], []), "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    run = [inner for inner, _ in run_by(code, world.namespace)]
    return bool({*path.split("."), "*"} & {name for inner in run for name in stored_by(inner)}) or (
        path in may_set(code, sys.modules[module], world.namespace)
    )


def _is_written(bound: Iterable[Executed]) -> bool:
    """Return whether statements of a file give a name no more than what they spell out."""
    values = (getattr(executed.statement.node, "value", None) for executed in bound)
    return all(value is not None and evaluated(value) is not COMPUTED for value in values)


def left_in_module(name: str, value: Any, world: World) -> Iterator[Finding]:
    """Yield an error for what can't travel and nothing in its module's file gives: the module has
    not set it itself, as it does with a client that it makes when it needs one, or the notebook
    has changed that."""
    module, _, path = name.partition(":")
    own = world.modules.of(module)
    bound = own.history.of(path) if own and path.isidentifier() else ()
    if len(bound) == 1 and _is_as_written(bound[0].statement.node, value):
        return  # it is only large
    code = [function.__code__ for _, function in functions_of(sys.modules[module])]
    if own and path.isidentifier() and _is_written(bound):
        stored = {name for part in code for name in stored_by(part, with_globals=True)}
        is_its_own = f"global {path}" in stored
        changing = change_of(value, module, path, world) if is_its_own else None
        where = f"by {changing.statement.where}" if changing else "in the notebook"
        if not is_its_own or changing:
            message = (
                f"`{module}.{path}` ({type(value).__name__}) was {'changed' if changing else 'set'}"
                f" {where} and can't be captured: ranks would have what {module} gives. "
                f"{'Change' if changing else 'Set'} it in the cell"
            )
            yield Finding("capture.not-portable", Severity.ERROR, module, message)


def _is_as_written(node: ast.stmt, value: Any) -> bool:
    """Return whether a value is still what a module's statement writes out, however large."""
    written = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    return written is not None and repr(evaluated(written)) == repr(value)


def _unseen(modules: Collection[str], world: World) -> Iterator[tuple[str, str, Executed]]:
    """Yield the modules, parts and statements of the state that nobody saw being set."""
    loaded = {name: sys.modules[name] for name in modules & sys.modules.keys()}
    parts = [(name, part) for name, m in loaded.items() for part in (m, *vars(m).values())]
    scalar = (str, int, float, type(None))
    module_of = {id(part): name for name, part in parts if not isinstance(part, scalar)}
    roots = {name: module_of[id(v)] for name, v in world.namespace.items() if id(v) in module_of}
    for executed in world.history.executed if roots else ():
        if world.saw(executed.statement):
            continue
        for owner, method in changed_by(ast.walk(executed.statement.node)):
            root = owner
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            name = getattr(root, "id", "")
            calls = method and owner is root and isinstance(world.namespace.get(name), ModuleType)
            if name in roots and not calls:
                path = _path_in(owner, roots[name], world)
                yield roots[name], path or ast.unparse(owner).removeprefix(f"{name}."), executed


def _changed_in_parts(modules: Iterable[str], world: World) -> Iterator[Finding]:
    """Refuse what each rank makes by itself as it imports a module, and the notebook has changed in
    parts since: neither of the two is right in a rank."""
    for module in modules:
        own, since = world.modules.of(module), world.seen.observer.modules.since_import(module)
        changed = [name for name in own.namespace if since(name)] if own else []
        for name in changed:
            assert own is not None
            dependence = world.dependence(name, own)
            if dependence is None or dependence.kind != "world":
                continue
            paths = [p for p in _made_by_rank(own, name, world) if since(p) == "changed"]
            for path in paths:
                message = (
                    f"`{module}.{path}` has changed since the import of {module}, which makes it by"
                    f" `{dependence.what}` ({dependence.where}): ranks would miss the change. Make"
                    " it in the cell"
                )
                yield Finding("capture.not-portable", Severity.ERROR, module, message)


def _made_by_rank(module_code: OwnModule, name: str, world: World) -> Iterator[str]:
    """Yield the path of a module's part, or the paths of those attributes of a class that each rank
    sets."""
    value, bound = module_code.namespace[name], module_code.history.of(name)
    node = bound[0].statement.node if bound else None
    if not isinstance(value, type) or not isinstance(node, ast.ClassDef):
        yield name
        return
    for attribute, _ in attributes(value):
        if _is_by_rank(module_code, name, attribute, node, world):
            yield f"{name}.{attribute}"


def variables_of_the_world(
    repeated: Collection[Executed], by_value: Iterable[str], world: World
) -> Iterator[Finding]:
    """Yield a warning for each statement that set variables of the environment, or state of the
    process that ranks have `by_value`, by what knows the world, and is none that ranks repeat."""
    message = (
        "{}: every rank has the notebook's, though {} asked for the world{}. Set it in the cell"
    )
    sets = [
        (f"`{name.replace(':', '.')}`", f"{at[0]}, line {at[1]}", "")
        for name in by_value
        if (at := world.seen.observer.settings.asked_at(name))
    ]
    for executed in world.history.executed:
        names = world.seen.sets(executed.statement) if executed not in repeated else ()
        dependence = world.dependence_of(executed) if names else None
        if dependence and dependence.kind == "world":
            variables = f"{', '.join(sorted(names))} in the environment"
            sets.append((variables, executed.statement.where, f" ({dependence.what})"))
    for parts in sets:
        yield Finding("capture.left-behind", Severity.WARNING, "", message.format(*parts))
