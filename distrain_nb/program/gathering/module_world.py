"""Modules beside the notebook whose state comes from the world that the kernel lives in."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from distrain_nb.program.notebook.world import World

_SETTERS = ("setattr", "delattr")


def from_the_world(paths: Iterable[str], world: World) -> Iterator[Finding]:
    """Refuse state of modules, `module:CFG.lr`, that a statement set by what knows the world.

    Every rank would get the kernel's value, that of a world of one. A function of the module that
    is given what knows the world may do the same: that is a warning.
    """
    for path in paths:
        module, separator, inner = path.partition(":")
        if not separator or module not in sys.modules:
            continue
        roots = _names_of(sys.modules[module], inner, world.namespace)
        for executed in world.history.executed:
            sets = _sets(executed.statement.node, inner, roots)
            reading = world.asked_by(executed) if sets is not None else None
            if reading is None or reading.kind != "world":
                continue
            may = "sets" if sets else "may set"
            message = (
                f"`{module}.{inner}` has the notebook's value in every rank, though"
                f" {executed.statement.where} {may} it by what knows `{reading.what}`"
                f" ({reading.where}). Move that line into the cell"
            )
            severity = Severity.ERROR if sets else Severity.WARNING
            yield Finding("capture.not-portable", severity, module, message)
            break


def _names_of(module: Any, inner: str, namespace: Mapping[str, Any]) -> dict[str, str]:
    """Return the notebook's names for a module and the objects on the way, with their paths."""
    on_the_way, owner, path = {id(module): ""}, module, ""
    for attribute in inner.split("."):
        owner, path = getattr(owner, attribute, None), f"{path}.{attribute}".lstrip(".")
        if not isinstance(owner, (str, int, float, type(None))):
            on_the_way[id(owner)] = path
    return {name: on_the_way[id(v)] for name, v in namespace.items() if id(v) in on_the_way}


def _sets(node: ast.AST, inner: str, roots: Mapping[str, str]) -> bool | None:
    """Return whether a statement sets the state at a path; False if a function may, else None."""
    may = None
    for part in ast.walk(node):
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            if _is_on(_path(part, roots), inner):
                return True
        elif isinstance(part, ast.Call):
            of_method = _path(part.func, roots)
            if isinstance(part.func, ast.Name) and part.func.id in _SETTERS:
                if _is_on(_set_by_name(part.args, roots), inner):
                    return True
            elif of_method is not None and "." in of_method:
                if _is_on(of_method.rpartition(".")[0], inner):
                    return True
            elif of_method is not None:
                may = False
    return may


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
