"""Modules beside the notebook whose state comes from the world that the kernel lives in."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.notebook.process_bound import is_bound
from distrain_nb.program.notebook.seen import is_at
from distrain_nb.worker.fingerprint import OF_THE_WORLD, dict_of, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.reach import Reading
    from distrain_nb.program.notebook.world import World

_SETTERS = ("setattr", "delattr")


def from_the_world(
    paths: Iterable[str], modules: Collection[str], world: World
) -> Iterator[Finding]:
    """Refuse state of modules that a statement set by what knows the world: every rank would get
    the kernel's value, that of a world of one.

    What statements changed was seen; where nobody saw them, the paths of state that travels,
    `module:CFG.lr`, are looked for in their texts.
    """
    sets = {found[:2]: found for found in (*_unseen(paths, world), *_seen(modules, world))}
    for module, inner, executed, reading in sets.values():
        message = (
            f"`{module}.{inner}` has the notebook's value in every rank, though"
            f" {executed.statement.where} sets it by what knows `{reading.what}`"
            f" ({reading.where}). Move that line into the cell"
        )
        yield Finding("capture.not-portable", Severity.ERROR, module, message)


_Set = tuple[str, str, "Executed", "Reading"]


def _seen(modules: Collection[str], world: World) -> Iterator[_Set]:
    for change in world.seen.module_changes(modules):
        path = change.path.removeprefix("len(").rstrip(")")
        for executed in world.history.executed:
            if is_at(change, executed.statement):
                settings = settings_read(executed.statement.node, world)
                reading = world.asked_by(executed, settings)
                if reading is not None and reading.kind == "world":
                    yield change.module, path.partition("[")[0], executed, reading


def settings_read(node: ast.AST, world: World) -> set[str]:
    """Return the names of objects of packages that know the world, such as `TrainingArguments`, of
    which a statement reads only numbers and texts that are the same in all ranks."""
    parents = {child: n for n in ast.walk(node) for child in ast.iter_child_nodes(n)}
    read: dict[str, bool] = {}
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and is_bound(world.namespace.get(name.id)):
            plain = _is_setting(parents.get(name), dict_of(world.namespace[name.id]))
            read[name.id] = plain and read.get(name.id, True)
    return {name for name, plain in read.items() if plain}


def _is_setting(node: ast.AST | None, has: Mapping[str, Any]) -> bool:
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    name = node.attr
    return name[:1] != "_" and name not in OF_THE_WORLD and text_of(has.get(name, has)) is not None


def _unseen(paths: Iterable[str], world: World) -> Iterator[_Set]:
    for path in paths:
        module, separator, inner = path.partition(":")
        if not separator or module not in sys.modules:
            continue
        roots = _names_of(sys.modules[module], inner, world.namespace)
        for executed in world.history.executed:
            if world.saw(executed.statement) or not _sets(executed.statement.node, inner, roots):
                continue
            reading = world.asked_by(executed, settings_read(executed.statement.node, world))
            if reading is not None and reading.kind == "world":
                yield module, inner, executed, reading
                break


def _names_of(module: Any, inner: str, namespace: Mapping[str, Any]) -> dict[str, str]:
    """Return the notebook's names for a module and the objects on the way, with their paths."""
    on_the_way, owner, path = {id(module): ""}, module, ""
    for attribute in inner.split("."):
        owner, path = getattr(owner, attribute, None), f"{path}.{attribute}".lstrip(".")
        if not isinstance(owner, (str, int, float, type(None))):
            on_the_way[id(owner)] = path
    return {name: on_the_way[id(v)] for name, v in namespace.items() if id(v) in on_the_way}


def _sets(node: ast.AST, inner: str, roots: Mapping[str, str]) -> bool:
    """Return whether a statement sets the state at a path."""
    for part in ast.walk(node):
        path = None
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            path = _path(part, roots)
        elif isinstance(part, ast.Call):
            method = _path(part.func, roots)
            if isinstance(part.func, ast.Name) and part.func.id in _SETTERS:
                path = _set_by_name(part.args, roots)
            elif method is not None and "." in method:
                path = method.rpartition(".")[0]
        if _is_on(path, inner):
            return True
    return False


def _set_by_name(arguments: Sequence[ast.expr], roots: Mapping[str, str]) -> str | None:
    """Return the path that `setattr(module, "LR", …)` sets; that of the object for other names."""
    owner = _path(arguments[0], roots) if arguments else None
    name = arguments[1] if len(arguments) > 1 else None
    if owner is None or not isinstance(name, ast.Constant):
        return owner
    return ".".join(filter(None, (owner, str(name.value))))


def _path(node: ast.AST, roots: Mapping[str, str]) -> str | None:
    """Return the path below the module of `module.CFG.lr`, that of the list for `module.CFG[0]`."""
    attributes: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
        else:
            attributes.clear()
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in roots:
        return None
    return ".".join(filter(None, (roots[node.id], *attributes)))


def _is_on(path: str | None, inner: str) -> bool:
    """Return whether what is set is the path, inside of it, or holds it."""
    if path is None:
        return False
    return not path or f"{path}.".startswith(f"{inner}.") or f"{inner}.".startswith(f"{path}.")
